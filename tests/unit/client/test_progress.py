"""The progress of a long run."""

import io
import os

import pytest

from scoregate.text import Progress
from tests.support.terminal import Terminal


@pytest.fixture
def progress(monkeypatch):
    """What four of ten steps print at these times: the first is of an earlier run, and the second fails."""

    def progress(file, times, **options):
        now = [0.0]
        monkeypatch.setattr("tqdm.std.time", lambda: now[0])
        shown = Progress(10, file=file, **options)
        for step, now[0] in enumerate(times):
            shown.step(failed=step == 1, resumed=step == 0)
        shown.close()
        return file.getvalue()

    return progress


def test_a_terminal_shows_a_bar_with_the_rate_and_the_time_left(progress):
    """Items of an earlier run do not count for the rate: three in four seconds, so six take eight."""
    shown = progress(Terminal(), [1, 2, 3, 4], leave=False)

    assert "| 4/10 [00:04<00:08,  1.33s/it, 1 with errors]" in shown
    assert shown.endswith("\r")


def test_a_terminal_shows_the_bar_before_the_first_item():
    """The first request may take a minute."""
    terminal = Terminal()
    with Progress(10, file=terminal, leave=False):
        assert "| 0/10 [00:00<?" in terminal.getvalue()


def test_a_terminal_without_a_width_shows_the_bar():
    """A pseudo-terminal has no columns until somebody sets them."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as file, os.fdopen(ours, "rb", buffering=0) as shown:
        Progress(10, file=file, leave=False).close()
        assert b"| 0/10 [00:00<?" in shown.read(400)


def test_a_log_gets_a_line_only_now_and_then(progress):
    """And no control characters."""
    shown = progress(io.StringIO(), [1, 31, 32, 33], leave=False)

    [line] = shown.split("\n")[:-1]
    assert "| 2/10 [00:31<04:08, 31.00s/it, 1 with errors]" in line
    assert "\r" not in shown.rstrip("\r")


def test_a_short_run_leaves_no_line_in_a_log(progress):
    """Unless the last state is to be kept."""
    assert "" == progress(io.StringIO(), [1, 2, 3, 4], leave=False)
    assert "| 4/10 [" in progress(io.StringIO(), [1, 2, 3, 4])
