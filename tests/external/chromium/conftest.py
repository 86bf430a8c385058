"""A Chromium, and the services that it looks at: the open one, and the one with a key that has a quota."""

from pathlib import Path

import pytest

from tests.support.chromium import chrome, page, window
from tests.support.fake_service import FakeService
from tests.support.pictures import png

__all__ = ["chrome", "page", "window"]


@pytest.fixture(scope="session")
def service(fake_service: FakeService) -> str:
    return f"{fake_service.url}/"


@pytest.fixture(scope="session")
def locked(locked_service: FakeService) -> str:
    return f"{locked_service.url}/"


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """A picture whose name a shell would take apart."""
    path = tmp_path / "a red 'square'.png"
    path.write_bytes(png())
    return path
