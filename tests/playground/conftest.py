"""A Chromium, and real services around fake models: an open one, and one with a key that has a quota."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.process import SERVICE, free_port, running, url, wait_until_ready
from tests.conftest import png
from tests.docs.pages import ROOT
from tests.support.browser import Browser, chromium
from tests.support.nginx_server import listens
from tests.support.service import until

FAKES = (*SERVICE, "--config", str(ROOT / "loadtest" / "fake.toml"))
KEY, QUOTA = "a key of the tests", 60  # pairs of an item and a metric a minute


@contextmanager
def served(folder: Path, *, ready: bool = True, **settings: str) -> Iterator[str]:
    """The address of a service around fake models, its files in *folder*; it may never become *ready*."""
    port = free_port(0)
    settings |= {"SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{folder}/questions.sqlite3"}
    with running(port, FAKES, folder / "service.log", **settings) as process:
        if ready:
            wait_until_ready(process, port)
        else:
            until(lambda: listens(port))
        yield f"{url(port)}/"


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("open")) as address:
        yield address


@pytest.fixture(scope="package")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("locked")
    keys = folder / "keys"
    keys.write_text(f"tests:{hashlib.sha256(KEY.encode()).hexdigest()} quota={QUOTA}\n", "utf-8")
    with served(folder, SCOREGATE_SERVER__API_KEYS_FILE=str(keys)) as address:
        yield address


@pytest.fixture(scope="package")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def browser(chrome: Browser) -> Iterator[Browser]:
    """The page in a usual window; in the end it has asked no other host for anything."""
    chrome.look(1280, 900)
    yield chrome
    own = chrome.run("location.origin")
    assert [] == [each for each in chrome.addresses() if not each.startswith((own, "blob:", "data:"))]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """A picture whose name a shell would take apart."""
    path = tmp_path / "a red 'square'.png"
    path.write_bytes(png())
    return path
