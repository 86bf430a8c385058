"""Pictures that are broken, strange or too large: one item's error at most, never its neighbour's."""

import io

import PIL.Image

from models.images.formats.decode import decode
from tests.costs.web.test_cost_of_bad_input import bomb, declared
from tests.support.pictures import picture, see_through


def test_alpha_is_dropped_and_not_blended():
    """A picture that cannot be seen scores as the one that it covers."""
    assert picture().tobytes() == decode(see_through()).tobytes()


def test_the_bombs_are_small_and_go_off():
    """The cases above are what they claim to be."""
    assert len(bomb(50)) < 100_000
    with PIL.Image.open(io.BytesIO(declared(30_000, 30_000))) as large:
        assert (30_000, 30_000) == large.size
