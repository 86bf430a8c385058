"""What a minute of video takes in memory, in the service and in the process that decodes."""

from pathlib import Path

import pytest

from demo.process import SERVICE, free_port, running, url, wait_until_ready
from scoregate import Client, TimeSpan
from tests.costs.models.test_decoding_cost import MB, status
from tests.support.films import COLOURS, mp4
from tests.support.pictures import png

LENGTH_S, STORED_FPS, FPS = 60, 4, 2
MOST_MB = 400


def with_children(pid):
    """A process, and those that it started."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [pid, *(int(child) for task in tasks for child in task.read_text("ascii").split())]


def test_a_minute_of_1080p_at_two_frames_a_second_takes_less_than_400_mb(tmp_path):
    """Above what the idle service holds; each frame is scored once."""
    pytest.importorskip("av", reason="the extra `video` is not installed")
    colours = [COLOURS[number // STORED_FPS % len(COLOURS)] for number in range(LENGTH_S * STORED_FPS)]
    video = mp4(colours, (1920, 1080), fps=STORED_FPS)
    store = {"SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{tmp_path}/q.sqlite3"}
    port = free_port(0)
    with running(port, SERVICE, tmp_path / "stderr", **store) as process:
        wait_until_ready(process, port)
        with Client(url(port), timeout_s=300) as client:
            client.score(png(), "a red square", "clipscore")
            idle = sum(status(pid, "VmRSS") for pid in with_children(process.pid))
            Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # forget the peaks until now
            score = client.score(video, "a red square", "clipscore", span=TimeSpan(fps=FPS), explain=True)
            peak = sum(status(pid, "VmHWM") for pid in with_children(process.pid))

    taken_mb = (peak - idle) / MB
    print(f"{taken_mb:.0f} MB above {idle / MB:.0f} MB")
    assert LENGTH_S * FPS == score.details["frames_used"] == len(score.details["frames"])
    assert [number / FPS for number in range(120)] == [each["time_s"] for each in score.details["frames"]]
    assert 0 < taken_mb < MOST_MB
