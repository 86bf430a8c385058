"""What it costs to resize a picture, beside Pillow."""

import time

import numpy as np
import PIL.Image
import pytest

from models.images.pixels import resample, taps_of


@pytest.mark.parametrize("side", [300, 512, 768])
def test_a_resize_costs_at_most_half_of_pillows(side):
    """CPU time of one thread, to 336²; a third where nothing else runs."""
    noise = np.random.default_rng(0).integers(0, 256, (side, side, 3), np.uint8)
    rgb, taps = PIL.Image.fromarray(noise), taps_of(side, 336)

    ours = min(cost(lambda: resample(rgb, taps, taps)) for _ in range(20))
    pillows = min(cost(lambda: rgb.resize((336, 336), PIL.Image.Resampling.BICUBIC)) for _ in range(20))

    assert ours < 0.5 * pillows


def cost(work) -> float:
    """Seconds of CPU time."""
    began = time.thread_time()
    work()
    return time.thread_time() - began
