"""Grids of frames that a process of its own decodes."""

from tests.process.models.test_film import CountedStack
from tests.support.films import film
from tests.unit.models.grids import BLACK, cells, grid, of


def test_frames_of_one_animation_are_decoded_together():
    """Each frame builds on those before it."""
    found = CountedStack(film())

    assert [*of("red", "lime", "blue"), BLACK] == cells(grid([found.frame(n) for n in range(3)]))
    assert 1 == found.times
