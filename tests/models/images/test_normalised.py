"""Pixels of 8 bits, normalised on the device of their batch."""

import numpy as np
import PIL.Image
import pytest
import torch

from models.families.clip.preprocessing import Preprocessing
from models.images.pixels import CLIP_MEAN, CLIP_STD, Pixels, normalised
from tests.support.dry_run import dry_run

HALVES = (0.5, 0.5, 0.5)
LEVELS = torch.arange(256, dtype=torch.uint8).expand(3, 1, 256)


@pytest.mark.parametrize(("mean", "std"), [(CLIP_MEAN, CLIP_STD), (HALVES, HALVES)])
def test_each_value_is_the_references_to_the_bit(mean, std):
    """transformers' steps in numpy: a product in double precision, a difference and a quotient."""
    scaled = (np.arange(256) * (1 / 255)).astype(np.float32)[None, None]
    centre, spread = (np.array(each, np.float32)[:, None, None] for each in (mean, std))

    assert np.array_equal((scaled - centre) / spread, normalised(LEVELS, mean, std).numpy())


def test_a_batch_is_normalised_as_each_of_its_pictures():
    """The colours are found from the end of the shape."""
    batch = torch.randint(0, 256, (4, 3, 5, 7), dtype=torch.uint8)
    alone = [normalised(picture, CLIP_MEAN, CLIP_STD) for picture in batch]

    assert torch.equal(torch.stack(alone), normalised(batch, CLIP_MEAN, CLIP_STD))


@pytest.mark.parametrize("prepare", [Pixels(8), Preprocessing((8, 8), CLIP_MEAN, CLIP_STD)])
def test_a_picture_leaves_the_host_as_8_bits(prepare):
    """A quarter of the bytes of its float32 numbers."""
    resized = prepare.resized(PIL.Image.new("RGB", (20, 10), "red"))

    assert (torch.uint8, (3, 8, 8)) == (resized.dtype, (*resized.shape,))
    assert torch.equal(prepare.normalised(resized), prepare(PIL.Image.new("RGB", (20, 10), "red")))


def test_a_gpu_divides_by_tensors_that_it_holds(monkeypatch):
    """By a number it would multiply with the reciprocal, which is off by one place in some values."""
    divisors = []
    divide = torch.Tensor.div_

    def divided(self, other):
        divisors.append(other)
        return divide(self, other)

    monkeypatch.setattr(torch.Tensor, "div_", divided)
    with dry_run():
        made = normalised(torch.zeros(2, 3, 4, 4, dtype=torch.uint8, device="cuda"), CLIP_MEAN, CLIP_STD)
        assert "cuda" == made.device.type
        assert {"cuda"} == {divisor.device.type for divisor in divisors}
