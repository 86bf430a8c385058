"""scoregate.trainers.diffusers, on what a pipeline returns."""

from types import SimpleNamespace

import numpy as np
import PIL.Image
import pytest
import torch

from scoregate.trainers.diffusers import best_of_n
from scoregate.trainers.reward import Reward

PIXELS = np.random.default_rng(0).integers(0, 256, (9, 16, 16, 3), np.uint8)


@pytest.mark.parametrize("output_type", ["pil", "np", "pt"])
def test_the_best_picture_is_the_same_in_every_output_type(here, output_type):
    """And comes back as the pipeline gave it."""
    floats = PIXELS.astype(np.float32) / 255
    outputs = {
        "pil": [PIL.Image.fromarray(one) for one in PIXELS],
        "np": floats,
        "pt": torch.from_numpy(floats).permute(0, 3, 1, 2),
    }
    best = best_of_n(SimpleNamespace(images=outputs[output_type]), "a red square")
    scores = Reward(logit=False)(PIXELS, ["a red square"] * 9)

    assert (scores, max(scores)) == (best.scores, best.score)
    assert scores.index(max(scores)) == best.index
    assert (
        outputs[output_type][best.index] is best.image
        or (outputs[output_type][best.index] == best.image).all()
    )
