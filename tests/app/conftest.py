"""The real app around fake models, and a web server in threads."""

from collections.abc import Iterator

import pytest

from tests.support.app import fakes, serve, shared_apps
from tests.support.large_requests import opened
from tests.support.nothing import nothing_started
from tests.support.web_server import held, make_httpserver

__all__ = ["fakes", "held", "make_httpserver", "opened", "serve", "shared_apps"]


@pytest.fixture(autouse=True, scope="module")
def _in_process() -> Iterator[None]:
    """Fail where a process is started or torch is loaded: this tier needs neither."""
    with nothing_started(("torch",)):
        yield
