"""scoregate.trainers.images: the files that pixels are sent as."""

import io

import numpy as np
import PIL.Image
import pytest
import torch

from scoregate.errors import BadImageError
from scoregate.trainers import Reward
from scoregate.trainers.images import in_a_file

PIXELS = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
FORMS = [PIXELS, torch.from_numpy(PIXELS).permute(2, 0, 1), PIL.Image.fromarray(PIXELS)]


@pytest.mark.parametrize("picture", FORMS, ids=["array", "tensor", "pillow"])
@pytest.mark.parametrize(("encode", "kind"), [("raw", "BMP"), ("png", "PNG"), ("jpeg", "JPEG")])
def test_pixels_of_any_form_are_sent_as_the_setting_says(picture, encode, kind):
    """Without loss, unless it is JPEG."""
    with PIL.Image.open(io.BytesIO(in_a_file(picture, encode))) as sent:
        assert kind == sent.format
        assert (np.asarray(sent) == PIXELS).all() == (encode != "jpeg")


def test_files_are_sent_as_they_are():
    """They have an encoding already."""
    file = in_a_file(PIXELS, "png")

    assert file == in_a_file(file, "jpeg")


def test_pixels_that_are_none_are_an_error_in_every_encoding():
    """And no black picture."""
    assert isinstance(in_a_file(np.full((8, 8, 3), np.nan), "jpeg"), BadImageError)


def test_an_encoding_that_does_not_exist_is_a_mistake():
    """At once."""
    with pytest.raises(ValueError, match="encode is one of raw, png, jpeg, not 'webp'"):
        Reward(encode="webp")
