"""The frames that are taken of a part of a video."""

import pytest

from service.scoring.plan import TimeSpan

FILM = [number / 24 for number in range(49)]  # two seconds
SLOW = [0, 0.5, 3, 3.1, 4]


@pytest.mark.parametrize(
    ("clip", "times", "expected"),
    [
        (TimeSpan(), SLOW, [0, 1, 2, 3]),
        (TimeSpan(start=0.5), SLOW, [1, 2, 3]),
        (TimeSpan(start=0.6, end=3), SLOW, [1]),
        (TimeSpan(end=99), SLOW, [0, 1, 2, 3]),
        (TimeSpan(start=4), SLOW, []),
        (TimeSpan(start=1e308, fps=1000), SLOW, []),
        (TimeSpan(fps=1), SLOW, [0, 1, 2]),
        (TimeSpan(fps=100), SLOW, [0, 1, 2, 3]),
        (TimeSpan(start=0.7, fps=1), SLOW, [1, 3]),
        (TimeSpan(end=1, fps=1), SLOW, [0]),
        (TimeSpan(start=0.4, end=0.9, fps=1), SLOW, [0]),
        (TimeSpan(fps=2), FILM, [0, 12, 24, 36]),
        (TimeSpan(fps=8), FILM, [*range(0, 48, 3)]),
        (TimeSpan(fps=24), FILM, [*range(48)]),
        (TimeSpan(start=0.5, end=1.5, fps=4), FILM, [12, 18, 24, 30]),
        (TimeSpan(fps=0.1), FILM, [0]),
        (TimeSpan(start=1, fps=1e-7), FILM, [24]),
        (TimeSpan(start=1, end=1.25, fps=1000), FILM, [*range(24, 30)]),
    ],
)
def test_frames_are_those_on_screen_at_each_step_of_the_rate(clip, times, expected):
    """Each once, from the start to before the end; without a rate all of them."""
    assert expected == clip.frames(times)
