"""Pixels of the image processors of transformers, in two steps: bytes for the device, and numbers there."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from transformers import (
    BlipImageProcessorPil,
    EfficientNetImageProcessor,
    Mask2FormerImageProcessor,
    Siglip2ImageProcessor,
    SiglipImageProcessor,
)

from models.families.inputs import upload
from models.families.processors import PIXELS, ProcessorPixels
from models.images.pixels import gathered, looked_up
from tests.support.dry_run import dry_run

SIDE = {"height": 28, "width": 28}
EIGHT_BITS = {
    "siglip": SiglipImageProcessor(size=SIDE),
    "blip": BlipImageProcessorPil(size=SIDE),
    "mask2former": Mask2FormerImageProcessor(size={"shortest_edge": 32, "longest_edge": 64}),
}
FLOATS = {
    "siglip2, patches": Siglip2ImageProcessor(),
    "align, normalised twice": EfficientNetImageProcessor(size=SIDE, crop_size=SIDE),
    "padded by a number": Mask2FormerImageProcessor(
        size={"shortest_edge": 32, "longest_edge": 64}, pad_size={"height": 64, "width": 64}
    ),
}
PICTURES = [
    PIL.Image.fromarray(np.random.default_rng(seed).integers(256, size=(*size, 3), dtype=np.uint8))
    for seed, size in enumerate([(40, 60), (75, 31), (28, 28)])
]


def own(processor, picture):
    """The numbers of the processor itself."""
    return processor(images=picture, return_tensors="pt")["pixel_values"][0]


@pytest.mark.parametrize("name", EIGHT_BITS)
def test_a_resize_has_8_bits_and_the_processors_numbers_to_the_bit(name):
    """So a GPU gets a quarter of the bytes, and scores are unchanged."""
    pixels = ProcessorPixels(EIGHT_BITS[name], Path())
    for picture in PICTURES:
        resized = pixels.resized(picture)

        assert torch.uint8 == resized.dtype
        assert torch.equal(own(EIGHT_BITS[name], picture), pixels.normalised(resized))


@pytest.mark.parametrize("name", FLOATS)
def test_other_steps_are_left_to_the_processor(name):
    """Its numbers are passed on."""
    pixels = ProcessorPixels(FLOATS[name], Path())
    for picture in PICTURES:
        made = pixels.inputs(picture)[PIXELS]

        assert torch.float32 == made.dtype
        assert torch.equal(own(FLOATS[name], picture), made)
        assert made is pixels.normalised(made)


def test_both_ways_to_look_a_byte_up_return_equal_bits():
    """A GPU has no loops of numba."""
    table = np.random.default_rng(0).normal(size=(3, 256)).astype(np.float32)
    pixels = torch.randint(256, (2, 3, 5, 7), dtype=torch.uint8)

    assert torch.equal(looked_up(pixels, table), gathered(pixels, torch.from_numpy(table)))


def test_a_gpu_gets_8_bits_and_makes_the_numbers():
    """Only bytes are copied."""
    pixels = ProcessorPixels(EIGHT_BITS["siglip"], Path())
    rows = [pixels.resized(picture) for picture in PICTURES]
    with dry_run():
        copied = upload(rows, torch.device("cuda"))
        numbers = pixels.normalised(copied)

    assert ("cuda", torch.uint8) == (copied.device.type, copied.dtype)
    assert ("cuda", torch.float32, copied.shape) == (numbers.device.type, numbers.dtype, numbers.shape)
