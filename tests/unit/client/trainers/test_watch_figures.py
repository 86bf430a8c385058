"""scoregate.trainers.watch: the sample of a watch, and the figures of a step."""

import io
from bisect import bisect_left
from itertools import islice

import numpy as np
import PIL.Image
import pytest

from scoregate.errors import ModelFaultError, NoTextError
from scoregate.results import Result
from scoregate.trainers.outcomes import Scored
from scoregate.trainers.watch import (
    GROUP,
    PROMPTS,
    Step,
    compared,
    duplicates,
    sample,
    saturated,
    thumbnail,
)


def taken(share, seed, most=1000):
    return [number for number in islice(sample(share, seed), most) if number < most]


def result(scores, **errors):
    return Result(0, None, scores, errors, {}, {}, "r")


def file(pixels, form="PNG"):
    written = io.BytesIO()
    PIL.Image.fromarray(pixels).save(written, form)
    return written.getvalue()


@pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
def test_a_sample_is_a_share_of_any_run_of_pictures(share):
    """One of each ten, at random; with a share of 1, all of them, once."""
    numbers = taken(share, seed=7)

    assert sorted(set(numbers)) == numbers
    for start in range(0, 900, 100):
        here = sum(start <= number < start + 100 for number in numbers)
        assert 100 * share == pytest.approx(here, abs=0.15 * 100 * share)
    assert share < 1 or numbers == list(range(1000))


@pytest.mark.parametrize("share", [0.05, 0.37, 0.5, 0.6, 0.75, 0.9, 0.99])
@pytest.mark.parametrize("seed", range(3))
def test_a_sample_has_its_share_of_the_first_pictures_to_within_one(share, seed):
    """However many these are; no picture is in it twice."""
    numbers = taken(share, seed)

    assert len(set(numbers)) == len(numbers)
    assert numbers == sorted(numbers)
    for first in range(1, 1001):
        assert abs(bisect_left(numbers, first) - first * share) < 1 + 1e-9


def test_a_sample_is_that_of_its_seed():
    """Another seed has another one."""
    assert taken(0.1, 3) == taken(0.1, 3) != taken(0.1, 4)


def test_prompts_are_compared_by_seed_and_step():
    """A share of them in each step, and not the same ones in all."""
    prompts = [f"prompt {number}" for number in range(1000)]
    chosen = {
        (step, seed): [compared(p, step, 0.1, seed) for p in prompts] for step in (0, 1) for seed in (0, 1)
    }

    assert chosen[0, 0] == [compared(prompt, 0, 0.1, 0) for prompt in prompts]
    assert 3 < len({*map(tuple, chosen.values())})
    for each in chosen.values():
        assert 60 < sum(each) < 140


def test_figures_are_means_and_shares_of_a_step():
    """Of all rewards, and of the pictures that the watch has scored."""
    without = Scored(2.0)
    without.left_out = {"ocr": NoTextError("x")}
    step = Step(3)
    step.rewards.extend([1.0, 2.0, 3.0])
    step.add(Scored(1.0), result({"artifact": 0.5, "ocr": 1.0}))
    step.add(Scored(1.0), result({"artifact": 0.7}, ocr=NoTextError("x")))
    step.add(without, result({"artifact": 0.9, "ocr": 0.0}))
    step.add(NoTextError("x"), result({}, artifact=ModelFaultError("x"), ocr=ModelFaultError("x")))
    step.saturated.extend([True, False])

    assert {
        "reward": 2.0,
        "artifact/mean": pytest.approx(0.7),
        "ocr/mean": 0.5,
        "no_text": 0.75,
        "failed": 0.25,
        "saturated": 0.5,
        "skipped": 0.0,
    } == step.figures()


def test_a_step_without_pictures_has_no_figures_but_what_was_skipped():
    """No 0, and no NaN."""
    assert {"skipped": 0.0} == Step(0).figures()


def test_duplicates_are_pictures_that_resemble_another_of_their_prompt():
    """In another format and with a little noise too; the same picture of another prompt is none."""
    dice = np.random.default_rng(0)
    scene = dice.integers(0, 255, (8, 8, 3), np.uint8).repeat(8, 0).repeat(8, 1)
    noisy = np.clip(scene + dice.integers(-20, 21, scene.shape), 0, 255).astype(np.uint8)
    other = dice.integers(0, 255, (8, 8, 3), np.uint8).repeat(8, 0).repeat(8, 1)
    step = Step(0)
    for each in (file(scene, "BMP"), file(noisy), file(other)):
        step.compare("a", thumbnail(each))
    step.compare("b", thumbnail(file(scene)))

    assert pytest.approx(2 / 3) == step.figures()["duplicates"]


def test_pictures_of_other_colours_are_no_duplicates():
    """Flat ones: red and black; two black ones are."""
    red, black = (np.full((16, 16, 3), colour, np.uint8) for colour in ((255, 0, 0), 0))

    assert [False, True, True] == duplicates([thumbnail(file(each)) for each in (red, black, black)])
    assert [] == duplicates([thumbnail(file(red))])


def test_a_step_compares_a_limited_number_of_pictures():
    """Of a prompt, and of all prompts."""
    step = Step(0)
    for prompt in range(PROMPTS + 1):
        for _ in range(GROUP + 1 if prompt in (0, PROMPTS) else 1):
            step.compare(str(prompt), b"x")

    assert PROMPTS == len(step.thumbnails)
    assert GROUP == len(step.thumbnails["0"])


@pytest.mark.parametrize(
    ("score", "entry", "options", "expected"),
    [
        (1.0, {"range": [0, 1]}, {}, True),
        (0.9995, {"range": [0, 1]}, {}, True),
        (0.0, {"range": [0, 1]}, {}, True),
        (0.998, {"range": [0, 1]}, {}, False),
        (-1.0, {"range": [-1, 1]}, {}, True),
        (0.0, {"range": [-1, 1]}, {}, False),
        (8.0, {"range": [0, 1]}, {"output": "logit"}, True),
        (-1000.0, {"range": [0, 1]}, {"output": "logit"}, True),
        (1.0, {"range": [0, 1]}, {"output": "logit"}, False),
        (9.0, {"range": [0, None]}, {}, None),
        (9.0, {}, {}, None),
        (9.0, {"range": [0, 1]}, {"rubric": "edit"}, None),
        (9.0, {"range": [0, 1]}, {"output": "sum"}, None),
    ],
)
def test_a_score_at_an_end_of_its_range_is_saturated(score, entry, options, expected):
    """Log-odds as their probability; an open end and options of another range are unknown."""
    assert expected is saturated(score, entry, options)
