"""scoregate.trainers.images: every batch as a trainer holds it."""

import numpy as np
import PIL.Image
import pytest
import torch

from scoregate.errors import BadImageError
from scoregate.images import Frames
from scoregate.trainers.images import image_list

PIXELS = np.random.default_rng(0).integers(0, 256, (3, 8, 6, 3), np.uint8)
TENSOR = torch.from_numpy(PIXELS).permute(0, 3, 1, 2)

BATCHES = {
    "tensor NCHW": TENSOR,
    "tensor with a gradient": (TENSOR / 255).requires_grad_(),
    "half precision": (TENSOR / 255).to(torch.float16),
    "tensor NHWC": TENSOR.movedim(1, -1),
    "array NHWC": PIXELS,
    "array NCHW": PIXELS.transpose(0, 3, 1, 2),
    "floats": PIXELS / 255,
    "list of tensors": list(TENSOR),
    "list of arrays": list(PIXELS / np.float32(255)),
}


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_a_batch_becomes_the_bytes_of_each_picture(batch):
    """HWC, rounded and not cut."""
    shown = image_list(batch)

    assert 3 == len(shown)
    assert all((one == pixels).all() for one, pixels in zip(shown, PIXELS, strict=True))


def test_what_overshoots_by_rounding_is_clamped():
    """As the trainers clamp it."""
    [shown] = image_list(torch.tensor([-0.01, 0.5, 1.01]).reshape(1, 3, 1, 1))

    assert [0, 128, 255] == shown.reshape(-1).tolist()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_picture_that_is_not_finite_costs_no_other(bad):
    """It is an error in its place."""
    batch = TENSOR / 255
    batch[1, 2, 3, 4] = bad
    first, second, third = image_list(batch)

    assert isinstance(second, BadImageError)
    assert (first == PIXELS[0]).all()
    assert (third == PIXELS[2]).all()


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (torch.rand(2, 3, 4, 4) * 2 - 1, r"in \[0, 1\], not from -"),
        (torch.rand(2, 3, 4, 4) * 255, r"in \[0, 1\], not from .* to 2"),
        (torch.zeros(2, 3, 4, 4, dtype=torch.int64), "uint8 or floats"),
        (torch.zeros(2, 5, 4, 7), "1, 3 or 4 channels"),
        (torch.zeros(3, 4, 4), "four dimensions, not 3"),
    ],
    ids=["[-1, 1]", "[0, 255]", "integers", "five channels", "one picture"],
)
def test_what_is_no_batch_of_pictures_is_a_mistake(batch, reason):
    """Scoring something else in its place would be a wrong number."""
    with pytest.raises(ValueError, match=reason):
        image_list(batch)


def test_the_axis_of_the_colours_can_be_told():
    """Three rows of pixels look like three channels."""
    rows = torch.zeros(2, 3, 5, 3)

    assert (5, 3, 3) == image_list(rows)[0].shape
    assert (3, 5, 3) == image_list(rows, channels=3)[0].shape


def test_everything_else_is_handed_on():
    """PIL images, bytes, and frames; and an empty batch is one."""
    mixed = [PIL.Image.new("RGB", (2, 2)), b"file", Frames([b"frame"])]

    assert mixed == image_list(mixed)
    assert [] == image_list(torch.zeros(0, 3, 4, 4)) == image_list([])
