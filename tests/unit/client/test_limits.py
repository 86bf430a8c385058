"""The limits and the rule of the service that the client has too, since it doesn't import the service."""

import pytest

from scoregate import connection, images, many, sample_frames
from scoregate.bench import answers
from scoregate.data import rows
from service.core import fields
from service.core.settings import sections
from service.images import frames
from service.questions import sets
from service.web.wire import requests


@pytest.mark.parametrize(
    ("name", "of_client", "of_service"),
    [
        ("MAX_FILES", images, frames),
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


def test_the_client_samples_the_frames_that_the_service_samples():
    """Of none, of one, of fewer than the option `samples` has and of more; by default those of a video."""
    for film in map(range, (*range(frames.MAX_FRAMES + 2), 10_000)):
        assert frames.sampled(film, frames.VIDEO_FRAMES) == sample_frames(film)
        for count in range(1, frames.MAX_FRAMES + 1):
            assert frames.sampled(film, count) == sample_frames(film, count)
