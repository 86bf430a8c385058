"""Questions that were cut at a model's length: whoever reads the score is told."""

from dataclasses import replace

import pytest

from tests.support.pictures import item
from tests.support.questions import noted

pytestmark = pytest.mark.anyio

YES_NO = {"id": 1, "text": "Is there a dog?", "kind": "entities/singular/presence", "phrase": "dog"}
CHOICES = {"id": 1, "text": "Is there a dog?", "choices": ["yes", "no"], "expected": "yes", "phrase": "dog"}
SETS = {
    "dsg": [YES_NO, {**YES_NO, "id": 2, "text": "Is it red?"}],
    "skills": [YES_NO, {**YES_NO, "id": 2, "text": "Is it red?"}],
    "tifa": [CHOICES, {**CHOICES, "id": 2, "text": "Is it red?"}],
    "gecko": [CHOICES, {**CHOICES, "id": 2, "text": "Is it red?"}],
    "soft_tifa": [CHOICES, {**CHOICES, "id": 2, "text": "Is it red?"}],
    "vq2": [CHOICES, {**CHOICES, "id": 2, "text": "Is it red?"}],
}
CUT = "a question was cut at the model's length"


async def warnings(serve, fakes, metric, which, **options):
    """What a metric warns about where the VQA model cut the questions that hold *which*."""
    answer = fakes["vqa"].answer
    fakes["vqa"].answer = lambda call: replace(answer(call), truncated=which in getattr(call, "question", ""))
    async with serve() as client:
        _, told = await noted(client, metric, item("a dog"), **options)
    return told


@pytest.mark.parametrize("metric", SETS)
async def test_one_of_its_questions_that_was_cut_is_a_warning(serve, fakes, metric):
    """One for all of them."""
    assert CUT in await warnings(serve, fakes, metric, "red", question_set=SETS[metric])


@pytest.mark.parametrize("metric", SETS)
async def test_whole_questions_are_no_warning(serve, fakes, metric):
    """Of the model's length."""
    assert CUT not in await warnings(serve, fakes, metric, "not asked", question_set=SETS[metric])


@pytest.mark.parametrize(
    ("metric", "text"), [("judge", CUT), ("vqascore", "the question was cut at the model's length")]
)
async def test_metrics_of_one_question_warn_of_it_too(serve, fakes, metric, text):
    """And of nothing where it was whole."""
    assert text in await warnings(serve, fakes, metric, "")
    assert text not in await warnings(serve, fakes, metric, "not asked")
