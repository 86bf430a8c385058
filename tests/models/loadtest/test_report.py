"""Thresholds, and the measures that they bound."""

from pathlib import Path

import loadtest
from loadtest.__main__ import MEASURES
from loadtest.report import read_thresholds

FOLDER = Path(loadtest.__file__).parent

COMPUTED = (
    *("over_timer", "over_one_by_one"),
    *("two_devices_over_one", "eight_devices_over_one"),
    *("groups_over_singles_null", "groups_over_singles_timed"),
    *("hung_decision_late_ms", "hung_decisions_missing"),
)


def test_every_set_of_thresholds_can_be_read():
    """Each bounds a figure that some measure reports."""
    sources = "".join(path.read_text("utf-8") for path in (FOLDER / "measures").glob("*.py"))
    for name in ("short", "bench"):
        thresholds = read_thresholds(name)
        assert thresholds
        assert all(f'"{figure}"' in sources or figure in COMPUTED for figure in thresholds)


def test_each_measure_is_documented():
    """Each figure of `make loadtest` has its meaning and what was measured, for the reference page."""
    assert MEASURES
    assert all(threshold.meaning and threshold.measured for threshold in read_thresholds("short").values())
