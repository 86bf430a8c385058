"""The limits of the service that the client has too, since it doesn't import the service."""

import pytest

from scoregate import connection, images, many
from scoregate.bench import answers
from scoregate.data import rows
from service.core import fields
from service.core.settings import sections
from service.images import frames
from service.metrics.common import contract
from service.questions import sets
from service.web.wire import requests


@pytest.mark.parametrize(
    ("name", "of_client", "of_service"),
    [
        ("MAX_FILES", images, contract),
        ("VIDEO_FRAMES", images, frames),
        ("MAX_ITEMS", many, requests),
        ("MAX_TIMEOUT_MS", connection, sections),
        ("MAX_PROMPT", rows, fields),
        ("MAX_QUESTIONS", answers, sets),
        ("MAX_CHARACTERS", answers, sets),
    ],
)
def test_a_limit_of_the_service_has_its_name_and_its_value_in_the_client(name, of_client, of_service):
    """One of the client's own would refuse what the service takes, or send what it refuses."""
    assert getattr(of_service, name) == getattr(of_client, name)
