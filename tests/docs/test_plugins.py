"""A package whose entry point cannot be used ends the start with one line that names it."""

import pytest

from service.launch import WRONG
from tests.docs.packages import checked, declare

METRIC = """
from service.plugins import Item, Metric, Models, Score

async def score(item, models, options):
    return Score(0.0, {{}})

metric = Metric({name!r}, score, range={range})
"""
FAMILY = """
from service.plugins import Family, ModelSettings

FAMILY = Family("clip_flant5", role="vqa", settings=ModelSettings, loader="mine:load")
"""
METRICS, MODELS = "scoregate.metrics", "scoregate.models"

pytestmark = pytest.mark.integration


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
def test_a_package_that_cannot_be_used_is_one_line_and_status_2(tmp_path, group, text, entry, reason):
    """The line names the entry point and the package that brings it."""
    (tmp_path / "mine.py").write_text(text, "utf-8")
    declare(tmp_path, "some-package", "1.0", {group: {"mine": entry}})
    ended = checked(tmp_path)

    assert WRONG == 2 == ended.returncode
    assert "" == ended.stdout
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"scoregate-server: [{group}] mine = {entry} of some-package: ")
    assert reason in line
