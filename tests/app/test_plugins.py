"""A package whose entry point cannot be used ends the start with one line that names it."""

import sys

import pytest

from models.families import registry as models
from service.metrics.common import registry as metrics
from service.process import WRONG
from tests.support.command import server
from tests.support.packages import declare

__all__ = ["server"]

METRIC = """
from service.plugins import Item, Metric, ModelCalls, Score

async def score(item, models, options):
    return Score(0.0, {{}})

metric = Metric({name!r}, score, range={range})
"""
FAMILY = """
from service.plugins import Family, ModelSettings

FAMILY = Family("clip_flant5", role="vqa", settings=ModelSettings, loader="mine:load")
"""
METRICS, MODELS = "scoregate.metrics", "scoregate.models"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of packages that is found; what was found before is found again afterwards."""
    caches = (metrics.metrics, models.families, models.packages)
    monkeypatch.syspath_prepend(tmp_path)
    for cache in caches:
        cache.cache_clear()
    yield tmp_path
    sys.modules.pop("mine", None)
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize(
    ("group", "text", "entry", "reason"),
    [
        (METRICS, METRIC.format(name="vqascore", range=(0, 1)), "mine:metric", "named 'vqascore' already"),
        (MODELS, FAMILY, "mine:FAMILY", "named 'clip_flant5' already"),
        (METRICS, "import nothing_of_that_name", "mine:metric", "ModuleNotFoundError"),
        (METRICS, METRIC.format(name="mine", range=(1, 0)), "mine:metric", "the range of mine must be"),
        (METRICS, METRIC.format(name="mine", range=(0, 1)), "mine:score", "is a function, not a Metric"),
    ],
    ids=["metric-taken", "family-taken", "import", "declaration", "function"],
)
def test_a_package_that_cannot_be_used_is_one_line_and_status_2(server, folder, group, text, entry, reason):
    """The line names the entry point and the package that brings it."""
    (folder / "mine.py").write_text(text, "utf-8")
    declare(folder, "some-package", "1.0", {group: {"mine": entry}})
    status, shown, [line] = server("--check")

    assert WRONG == 2 == status
    assert "" == shown
    assert line.startswith(f"scoregate-server: [{group}] mine = {entry} of some-package: ")
    assert reason in line
