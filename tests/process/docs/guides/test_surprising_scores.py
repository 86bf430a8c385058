"""docs/guides/surprising-scores.md: what it shows of a score is what the score is made of."""

from math import sqrt

import numpy as np
import PIL.Image
import pytest

import scoregate
from demo.samples import FOLDER, listed
from models.images.pixels import pad_and_resize
from tests.support.pages import page
from tests.support.pictures import saved

PAGE = "surprising-scores.md"
SAMPLE = next(sample for sample in listed() if sample["file"] == "binding.png")
PICTURE = (FOLDER / SAMPLE["file"]).read_bytes()


@pytest.fixture(scope="module")
def demo(demo_service):
    """A client of the demo models, since scores matter here."""
    with scoregate.Client(demo_service.url) as client:
        yield client


def test_the_score_is_larger_than_the_probability_of_yes(demo):
    """√(P(Yes) · P(</s> | Yes)), as the page says; the other details belong to the same answer."""
    score = demo.score(PICTURE, SAMPLE["wrong"], explain=True)
    yes, no = score.details["p_yes"], score.details["p_no"]
    end = score.value**2 / yes

    assert end == pytest.approx(1, abs=0.01)
    assert score.value == pytest.approx(sqrt(yes * end))
    assert score.details["label_mass"] == pytest.approx(yes + no)
    assert score.details["logit"] == pytest.approx(np.log(yes / no), abs=1e-4)
    assert SAMPLE["wrong"] in score.details["question"]
    assert "0.49 where that is 0.24" in page(f"guides/{PAGE}")
    assert 0.49 == round(sqrt(0.24), 2)


def test_the_right_prompt_stands_above_one_that_changes_a_word(module, demo):
    """The best first."""
    prompts = [SAMPLE["wrong"], SAMPLE["right"], "a black heart"]
    scores = module(PAGE, "contrast.py").contrast(demo, PICTURE, prompts)

    assert SAMPLE["right"] == next(iter(scores))
    assert sorted(scores.values(), reverse=True) == list(scores.values())


@pytest.mark.parametrize("size", [(300, 200), (64, 400)])
def test_the_picture_shown_is_the_one_that_the_model_gets(module, size):
    """The same pixels as the service's own preprocessing, before they are normalised."""
    noise = np.random.default_rng(0).integers(0, 255, (size[1], size[0], 3), np.uint8)
    image = PIL.Image.fromarray(noise)
    seen = module(PAGE, "as_seen.py").as_seen(saved(image, "PNG"))

    assert np.array_equal(pad_and_resize(image, 336, (122, 116, 104)).transpose(1, 2, 0), np.asarray(seen))
