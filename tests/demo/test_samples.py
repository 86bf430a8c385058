"""The shipped pictures and prompts."""

import numpy as np
import PIL.Image
import pytest

from demo.samples import FOLDER, listed
from demo.samples.scenes import SAMPLES
from models.demo.world import draw


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)
def test_a_sample_shows_its_scene_and_its_prompts_are_right_and_wrong(sample):
    """The shipped picture is the scene as drawn, bar JPEG's noise; truth is the language's own."""
    assert sample.right.true_in(sample.scene) is True
    assert sample.wrong.true_in(sample.scene) is False
    with PIL.Image.open(FOLDER / sample.file) as shipped:
        drawn = draw(sample.scene, sample.longer_side)
        assert drawn.size == shipped.size
        assert np.abs(np.asarray(drawn, float) - np.asarray(shipped, float)).mean() < 2


def test_the_shipped_prompts_are_those_of_the_scenes():
    """`prompts.json` names every picture with both prompts; there are at least ten."""
    shipped = [tuple(sample.values()) for sample in listed()]

    assert [(s.file, s.right.text, s.wrong.text) for s in SAMPLES] == shipped
    assert 10 <= len(shipped)
