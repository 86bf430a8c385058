"""The resize, held against Pillow's."""

import numpy as np
import PIL.Image
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from open_clip.transform import PreprocessCfg, image_transform_v2

from models.families.clip.preprocessing import Preprocessing
from models.images.pixels import pad_and_resize, resample, resize_and_crop, rows_go_first, taps_of, words

SIDES = st.integers(1, 260)
FILTERS = {False: PIL.Image.Resampling.BICUBIC, True: PIL.Image.Resampling.BILINEAR}
BICUBIC = FILTERS[False]


def picture(width: int, height: int, *, hard: bool = False) -> PIL.Image.Image:
    """Return noise; *hard*: of black and white only, whose sums overshoot 8 bits."""
    noise = np.random.default_rng(width * 1000 + height).integers(0, 256, (height, width, 3), np.uint8)
    return PIL.Image.fromarray((noise > 127).astype(np.uint8) * 255 if hard else noise)


@settings(deadline=None, max_examples=150)
@given(SIDES, SIDES, SIDES, SIDES, st.booleans(), st.booleans())
@example(1, 1, 1, 1, False, False)
@example(1, 1, 224, 224, False, True)
@example(250, 1, 1, 250, False, True)
@example(2100, 300, 50, 60, False, False)  # more than one strip
@example(300, 2100, 290, 60, False, False)  # the same, rows first
@example(129, 129, 129, 129, False, False)
def test_every_size_equals_pillows(width, height, columns, rows, bilinear, hard):
    """To the bit, up and down, one pixel or more blocks, in both orders of the axes."""
    rgb, wanted = picture(width, height, hard=hard), (columns, rows)
    across, down = (taps_of(*axis, bilinear) for axis in zip(rgb.size, wanted, strict=True))

    found = resample(rgb, across, down, rows_first=rows_go_first(rgb.size, wanted))

    assert np.array_equal(np.asarray(rgb.resize(wanted, FILTERS[bilinear])), found.transpose(1, 2, 0))


@settings(deadline=None, max_examples=60)
@given(SIDES, SIDES, st.integers(1, 120), st.booleans())
@example(1500, 1, 56, True)
@example(1, 1500, 56, True)
def test_a_padded_picture_equals_a_resized_square(width, height, size, hard):
    """The weights of the edges are added up; the square itself is resized here."""
    rgb, colour, side = picture(width, height, hard=hard), (122, 116, 104), max(width, height)
    square = PIL.Image.new("RGB", (side, side), colour)
    square.paste(rgb, ((side - width) // 2, (side - height) // 2))

    found = pad_and_resize(rgb, size, colour)

    assert np.array_equal(np.asarray(square.resize((size, size), BICUBIC)), found.transpose(1, 2, 0))


@settings(deadline=None, max_examples=60)
@given(SIDES, SIDES, st.integers(1, 120), st.booleans(), st.booleans())
def test_a_crop_equals_that_of_the_whole_resized_picture(width, height, size, columns_first, to_even):
    """In Pillow's own order, and with columns always first."""
    rgb = picture(width, height)
    if max(rgb.size) > 64 * min(rgb.size):
        return  # cropped before it is resized
    wanted = (size, int(size * height / width)) if width <= height else (int(size * width / height), size)
    first = rgb.resize((wanted[0], height), BICUBIC) if columns_first else rgb
    left, top = (round((side - size) / 2) if to_even else (side - size) // 2 for side in wanted)
    expected = first.resize(wanted, BICUBIC).crop((left, top, left + size, top + size))

    found = resize_and_crop(rgb, size, columns_first, to_even)

    assert np.array_equal(np.asarray(expected), found.transpose(1, 2, 0))


@settings(deadline=None, max_examples=100)
@given(
    SIDES,
    SIDES,
    st.fixed_dictionaries(
        {
            "size": st.sampled_from([56, (56, 56), (40, 72), (72, 40)]),
            "resize_mode": st.sampled_from(["shortest", "longest", "squash"]),
            "interpolation": st.sampled_from(["bicubic", "bilinear"]),
            "fill_color": st.sampled_from([0, 120]),
        }
    ),
)
def test_every_preprocessing_equals_that_of_open_clip(width, height, config):
    """To the bit, or both fail."""
    rgb = picture(width, height)
    try:
        expected = image_transform_v2(PreprocessCfg(**config), is_train=False)(rgb)
    except ValueError:
        with pytest.raises(ValueError, match="resized picture would have"):
            Preprocessing.of(config)(rgb)
    else:
        assert torch.equal(expected, Preprocessing.of(config)(rgb))


def test_pixels_are_read_where_pillow_holds_them():
    """They are not copied; the memory lives as long as they do."""
    rgb = picture(30, 20)
    once, again = words(rgb), words(rgb)
    expected = np.asarray(rgb)
    del rgb

    assert np.shares_memory(once, again)
    assert not once.flags.writeable
    assert np.array_equal(expected, once.view(np.uint8).reshape(20, 30, 4)[..., :3])


def test_a_picture_whose_rows_lie_apart_has_the_same_pixels():
    """As Pillow allocates large ones unless its blocks are made larger."""
    core = PIL.Image.core
    size = core.get_block_size()
    core.set_block_size(4096)
    try:
        apart = picture(100, 90)
    finally:
        core.set_block_size(size)
    with pytest.raises(ValueError, match="contiguous"):
        apart.__arrow_c_array__()

    assert np.array_equal(
        pad_and_resize(picture(100, 90), 56, (1, 2, 3)), pad_and_resize(apart, 56, (1, 2, 3))
    )


@pytest.mark.parametrize("resize", [pad_and_resize, resize_and_crop])
def test_a_second_picture_of_a_size_computes_no_weights(resize):
    """Padding and crop are part of the cached weights."""
    taps_of.cache_clear()
    other = (0, 0, 0) if resize is pad_and_resize else True
    resize(picture(90, 60), 56, other)
    computed = taps_of.cache_info().misses
    resize(picture(90, 60, hard=True), 56, other)

    assert computed == taps_of.cache_info().misses == 2
