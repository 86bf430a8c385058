"""The hub's library without the hub: a cache of a test's own, and what requests get."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the hub's local cache, which is not there yet."""
    folder = tmp_path / "hub"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder))
    return folder


@pytest.fixture
def offline_hub(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the hub's local cache, with no way to the hub itself."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return hub_cache


@dataclass
class FakeHub:
    """
    A hub of one commit.

    Attributes:
        download: returns what a download does, given its repository and options.
        files: of a repository, as a trial of a download returns them.
        error: what each request raises, if anything.
        warning: what the library logs at each request, if anything.
        requests: the repository and options of each.
    """

    download: Callable[..., Any]
    files: Sequence[Any] = ()
    error: Exception | None = None
    warning: str = ""
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def model_info(self, repository: str, **options: Any) -> SimpleNamespace:
        """Return the commit."""
        self._request(repository, options)
        return SimpleNamespace(sha="1" * 40)

    def snapshot_download(self, repository: str, **options: Any) -> Any:
        """Return the files of a trial, or what the download returns; a look at the cache is no request."""
        if not options.get("local_files_only"):
            self._request(repository, options)
        return self.files if options.get("dry_run") else self.download(repository, **options)

    def _request(self, repository: str, options: dict[str, Any]) -> None:
        self.requests.append((repository, options))
        if self.warning:
            logging.getLogger("huggingface_hub").warning(self.warning)
        if self.error:
            raise self.error


@pytest.fixture
def fake_hub(monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    """A hub in place of that of the library."""
    import huggingface_hub  # few tests need it

    hub = FakeHub(huggingface_hub.snapshot_download)
    for name in ("model_info", "snapshot_download"):
        monkeypatch.setattr(huggingface_hub, name, getattr(hub, name))
    return hub
