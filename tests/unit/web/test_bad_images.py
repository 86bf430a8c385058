"""Pictures that are broken, strange or too large: one item's error at most, never its neighbour's."""

import io

import PIL.Image

from models.images.formats.decode import decode
from tests.costs.web.test_cost_of_bad_input import bomb, declared
from tests.support.pictures import saved


def picture(mode: str = "RGB", size: tuple[int, int] = (40, 30)) -> PIL.Image.Image:
    """Every pixel different, in any mode."""
    red = PIL.Image.linear_gradient("L").resize(size)
    rgb = PIL.Image.merge("RGB", (red, red.rotate(180), red.transpose(PIL.Image.Transpose.FLIP_LEFT_RIGHT)))
    return rgb.convert(mode)


def see_through() -> bytes:
    rgba = picture("RGBA")
    rgba.putalpha(PIL.Image.linear_gradient("L").resize(rgba.size))
    return saved(rgba, "PNG")


def test_alpha_is_dropped_and_not_blended():
    """A picture that cannot be seen scores as the one that it covers."""
    assert picture().tobytes() == decode(see_through()).tobytes()


def test_the_bombs_are_small_and_go_off():
    """The cases above are what they claim to be."""
    assert len(bomb(50)) < 100_000
    with PIL.Image.open(io.BytesIO(declared(30_000, 30_000))) as large:
        assert (30_000, 30_000) == large.size
