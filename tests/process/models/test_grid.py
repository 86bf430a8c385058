"""Grids of frames that a process of its own decodes."""

import models.images.frame_stack
from models.images.frame_stack import FrameStack
from tests.support.films import film
from tests.unit.models.grids import BLACK, cells, grid, of


def test_frames_of_one_animation_are_decoded_together(monkeypatch):
    """Each frame builds on those before it."""
    times, real = [], models.images.frame_stack.decode_film
    monkeypatch.setattr(
        models.images.frame_stack, "decode_film", lambda *file: times.append(1) or real(*file)
    )
    found = FrameStack(film())

    assert [*of("red", "lime", "blue"), BLACK] == cells(grid([found.frame(n) for n in range(3)]))
    assert 1 == len(times)
