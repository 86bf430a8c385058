"""Several pictures as one: row by row in a square grid."""

import pickle

import pytest

from models.images.grid import side
from models.images.image import DecodeTime, Image, ImageError
from tests.support.films import COLOURS
from tests.unit.models.grids import BLACK, cells, grid, of, stills


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (2, 2), (4, 2), (5, 3), (9, 3), (10, 4), (64, 8)])
def test_a_grid_is_the_smallest_square_that_holds_its_pictures(count, expected):
    assert expected == side(count)


def test_pictures_stand_row_by_row_and_cells_that_are_left_over_are_black():
    """Two in the first row, one in the second."""
    found = grid(stills("red", "lime", "blue"))

    assert (8, 8) == found.size == found.rgb.size
    assert [*of("red", "lime", "blue"), BLACK] == cells(found)


def test_a_smaller_picture_stands_in_the_middle_of_its_cell():
    """It is not scaled, and the cell is as large as the largest width and height."""
    found = grid([*stills("red", size=(2, 6)), *stills("lime", size=(8, 2))])

    assert (16, 12) == found.size
    assert [*of("red", "lime"), BLACK, BLACK] == cells(found)
    assert [BLACK, *of("red")] == [found.rgb.getpixel(place) for place in ((2, 3), (3, 3))]
    assert 2 * 6 == sum(found.rgb.crop((0, 0, 8, 6)).getchannel("R").histogram()[1:])


def test_equal_grids_have_equal_digests_and_others_do_not():
    """Named after their frames and their order; nothing is decoded for it."""
    red, lime, blue = stills("red", "lime", "blue")
    first = grid([red, lime, blue])

    assert first.digest == grid(stills("red", "lime", "blue")).digest
    others = [grid(pictures).digest for pictures in ([lime, red, blue], [red, lime], [red, lime, blue, blue])]
    assert 6 == len({first.digest, red.digest, lime.digest, *others})
    assert {DecodeTime()} == {picture.decode_time for picture in (red, lime, blue)}


def test_a_grid_has_its_pictures_one_after_the_other():
    """While one is decoded, the others hold no pixels: the header counts one of them."""
    held = []

    class Watched(Image):
        def _decoded(self):
            held.append(sum(picture._rgb is not None for picture in pictures))
            return super()._decoded()

    pictures = [Watched(still.encoded) for still in stills(*COLOURS[:4], size=(32, 32))]
    found = grid(pictures)
    _ = found.rgb

    assert [0, 0, 0, 0] == held
    assert 64 * 64 * 4 + 32 * 32 * 8 == found.header.memory


def test_the_error_of_a_picture_names_it():
    """And the other pictures are let go."""
    good, bad = stills("red", "lime")
    broken = Image(bad.encoded[:-30])

    with pytest.raises(ImageError, match=r"^frame 1: .*broken or truncated"):
        _ = grid([good, broken]).rgb
    assert good._rgb is None


def test_a_grid_reaches_another_process_as_a_picture_of_its_own():
    """With its digest."""
    found = grid(stills("red", "lime"))
    sent = pickle.loads(pickle.dumps(found))

    assert (found.digest, found.rgb.tobytes()) == (sent.digest, sent.rgb.tobytes())
