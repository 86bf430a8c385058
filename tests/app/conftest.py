"""The real app around fake models, and a web server in threads."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.app import fakes, serve, shared_apps
from tests.support.large_requests import opened
from tests.support.web_server import held, make_httpserver

__all__ = ["fakes", "held", "make_httpserver", "opened", "serve", "shared_apps"]


@pytest.fixture(autouse=True, scope="module")
def nothing_started() -> Iterator[None]:
    """Refuse every process, and the import of torch: this tier needs neither."""

    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("a process was started")

    before = "torch" in sys.modules
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", refuse)
        yield
    assert ("torch" in sys.modules) == before
