"""The frames that are taken of a part of a video."""

import pytest

from service.scoring.plan import Clip

FILM = [number / 24 for number in range(49)]  # two seconds
SLOW = [0, 0.5, 3, 3.1, 4]


@pytest.mark.parametrize(
    ("clip", "times", "expected"),
    [
        (Clip(), SLOW, [0, 1, 2, 3]),
        (Clip(start=0.5), SLOW, [1, 2, 3]),
        (Clip(start=0.6, end=3), SLOW, [1]),
        (Clip(end=99), SLOW, [0, 1, 2, 3]),
        (Clip(start=4), SLOW, []),
        (Clip(start=1e308, fps=1000), SLOW, []),
        (Clip(fps=1), SLOW, [0, 1, 2]),
        (Clip(fps=100), SLOW, [0, 1, 2, 3]),
        (Clip(start=0.7, fps=1), SLOW, [1, 3]),
        (Clip(end=1, fps=1), SLOW, [0]),
        (Clip(start=0.4, end=0.9, fps=1), SLOW, [0]),
        (Clip(fps=2), FILM, [0, 12, 24, 36]),
        (Clip(fps=8), FILM, [*range(0, 48, 3)]),
        (Clip(fps=24), FILM, [*range(48)]),
        (Clip(start=0.5, end=1.5, fps=4), FILM, [12, 18, 24, 30]),
        (Clip(fps=0.1), FILM, [0]),
        (Clip(start=1, fps=1e-7), FILM, [24]),
        (Clip(start=1, end=1.25, fps=1000), FILM, [*range(24, 30)]),
    ],
)
def test_frames_are_those_on_screen_at_each_step_of_the_rate(clip, times, expected):
    """Each once, from the start to before the end; without a rate all of them."""
    assert expected == clip.frames(times)
