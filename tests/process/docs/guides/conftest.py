"""A service around fake models, and the code that the guides show."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from tests.support.fake_service import FakeService
from tests.support.packages import files_of

Module = Callable[[str, str], ModuleType]


@pytest.fixture(scope="session")
def client(fake_service: FakeService) -> Iterator[httpx.Client]:
    """A client of the shared service."""
    with httpx.Client(base_url=fake_service.url, timeout=60, trust_env=False) as client:
        yield client


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    """The code of a guide's page, imported from a folder that holds all of the page's files."""

    def load(page: str, file: str) -> ModuleType:
        for name, text in files_of(f"guides/{page}").items():
            (tmp_path / name).write_text(text, "utf-8")
            monkeypatch.delitem(sys.modules, Path(name).stem, raising=False)
        monkeypatch.syspath_prepend(str(tmp_path))
        return importlib.import_module(Path(file).stem)

    return load
