"""Figures beside their thresholds, and the picture of the runs."""

import PIL.Image
import pytest

from loadtest import report
from loadtest.report import Figure, Threshold, by_lane, missed, plot, table
from tests.unit.loadtest.conftest import outcome


def test_a_missed_threshold_is_named_and_shown():
    """And so is one that nothing was measured for, or whose figure is not a number."""
    wanted = {
        "fast": Threshold(least=1.0),
        "slow": Threshold(most=1.0),
        "forgotten": Threshold(least=0),
        "unknown": Threshold(most=1),
    }
    figures = [
        Figure("fast", 1.0),
        Figure("slow", 1.5, "ms", "why"),
        Figure("unknown", float("nan")),
        Figure("free", 7),
    ]

    assert ["slow", "forgotten", "unknown"] == missed(figures, wanted)
    lines = [line.split() for line in table(figures, wanted)]
    assert ["slow", "1.5", "ms", "≤", "1", "MISSED", "why"] == lines[1]
    assert ["free", "7"] == lines[3]


def test_a_late_generator_is_told(capsys):
    """Otherwise its own queue would pass for the server's."""
    report.Report().keep("a panel", "a run", [outcome(due=0, sent=0.2)])

    assert "the generator was late, p99 200 ms" in capsys.readouterr().out


@pytest.mark.slow
def test_runs_become_one_picture(tmp_path):
    """A panel with two lanes and a failure, and one in which nothing was answered."""
    mixed = [outcome(lane="bulk"), outcome(done=2.0), outcome(scored=0)]
    plot({"mixed": {"service": mixed}, "nothing": {"timer": [outcome(scored=0)]}}, tmp_path / "runs.png")

    with PIL.Image.open(tmp_path / "runs.png") as picture:
        assert "PNG" == picture.format
    assert ["service, bulk", "service, interactive"] == list(by_lane({"service": mixed}))
