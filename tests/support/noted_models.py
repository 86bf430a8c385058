"""The family `noted`: fake models whose loads are noted, and fail or wait while a test says so."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from models.core.contract import Prepared
from models.core.family import Family
from models.families import registry
from models.families.fake import FakeSettings
from models.families.fake.model import FakeModel
from tests.support.packages import FAKES, declare

FAMILY = Family(
    "noted",
    role="",
    settings=FakeSettings,
    loader=f"{__name__}:load",
    planner="models.families.fake.model:plan",
)
LOADED: list[str] = []
SLOW: list[int] = []  # the number of calls of each slow batch
FAULTS: dict[str, Exception] = {}
BEGUN, FREE = threading.Event(), threading.Event()  # a load or a slow batch has begun; it may end
FREE.set()
HELD_S = 100  # at most, so that a test that fails ends


class NotedModel(FakeModel):
    """A fake whose batch is slow if a question of it has that word."""

    def score(self, batch: Sequence[Prepared]) -> list[Any]:
        if any("slow" in getattr(each.data, "question", "") for each in batch):
            SLOW.append(len(batch))
            BEGUN.set()
            assert FREE.wait(HELD_S)
        return super().score(batch)


def load(settings: FakeSettings) -> FakeModel:
    """Return a fake when loads may end, or raise the fault of its role."""
    BEGUN.set()
    assert FREE.wait(HELD_S)
    if fault := FAULTS.get(settings.role):
        raise fault
    LOADED.append(settings.role)
    return NotedModel(settings.role, id=settings.id, revision=settings.revision, device=settings.device)


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A profile of such models; the family is a package's, found in the test's folder."""
    caches = (registry.families, registry.packages)
    declare(tmp_path / "packages", "noted", "1.0", {"scoregate.models": {"noted": f"{__name__}:FAMILY"}})
    monkeypatch.syspath_prepend(tmp_path / "packages")
    (tmp_path / "noted.toml").write_text(FAKES.replace('family = "fake"', 'family = "noted"'), "utf-8")
    for cache in caches:
        cache.cache_clear()
    yield str(tmp_path / "noted.toml")
    LOADED.clear()
    SLOW.clear()
    FAULTS.clear()
    BEGUN.clear()
    for cache in caches:
        cache.cache_clear()
