"""Grades: what a judge is asked and shown, and what its labels' probabilities come to."""

from math import log
from types import SimpleNamespace

import pytest

from models.core.examples import PICTURE, TEXTS
from models.core.outcomes import Choices
from models.families.fake import GREY
from service.core.errors import Unanswered
from service.metrics.common.contract import Item
from service.metrics.judge import (
    RUBRICS,
    VALUES,
    JudgeOptions,
    demand_of,
    essential,
    judge,
    known,
    mean,
    rubric_of,
    unsure,
)
from service.observability.notes import Code
from service.serving.admission import Demand

DIGITS = VALUES["1-5"]


@pytest.mark.parametrize("value", range(1, 6))
def test_a_sure_grade_is_that_grade(value):
    """However unlikely all labels are, and never outside of 1 to 5."""
    for sure in (0.0, -0.7, -700.0, -740.0):
        log_probs = {label: sure if int(label) == value else sure - 2000 for label in DIGITS}
        assert value == mean(log_probs, DIGITS)


def test_a_mean_of_very_small_probabilities_keeps_its_digits():
    """Their sum alone would have lost them."""
    shares = (0.1, 0.2, 0.3, 0.25, 0.15)
    log_probs = {label: log(p) - 740 for label, p in zip(DIGITS, shares, strict=True)}

    assert sum(n * p for n, p in enumerate(shares, 1)) == pytest.approx(mean(log_probs, DIGITS), rel=1e-12)


GOOD = """
paper = "A 2024, arXiv 2401.00001"
question = "How well does it show {}?"
grades = ["not", "hardly", "half", "nearly", "all"]
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD.replace('"not", ', ""), "grades"),
        (GOOD.replace("{}", "{} and {}"), "question"),
        (GOOD.replace("paper", "source"), "paper"),
        (GOOD + '[pictures]\nimage = "A:"\nsource = "B:"\n', "last of the pictures"),
        (GOOD + '[pictures]\nvideo = "A:"\n', "pictures"),
        (GOOD + "oops", "a_file"),
    ],
)
def test_a_rubric_that_is_not_whole_is_refused_by_its_name(text, told):
    """When the service starts, and not when it is asked."""
    rubric_of("a_file", GOOD)
    with pytest.raises(ValueError, match=told) as refusal:
        rubric_of("a_file", text)
    assert "the rubric a_file" in str(refusal.value)


@pytest.mark.parametrize("name", RUBRICS)
def test_each_rubric_names_its_paper(name):
    """By authors, year and number."""
    assert RUBRICS[name].paper in {
        "Ku et al. 2023, arXiv 2312.14867",
        "Eldesokey et al. 2026, arXiv 2605.13223",
    }


def judging(*log_probs):
    """Grade a picture with a model whose labels have these log-probabilities."""

    async def answer(calls):
        return [Choices(tuple((each,) for each in log_probs))]

    return judge(Item(GREY, "a dog"), SimpleNamespace(vqa=SimpleNamespace(answer=answer)), JudgeOptions())


@pytest.mark.anyio
async def test_labels_have_at_most_all_of_the_probability_and_at_least_some():
    """Rounding may give their sum a little more than 1."""
    assert 1.0 == (await judging(*[log(0.2000001)] * 5)).details["label_mass"]
    with pytest.raises(Unanswered, match=r"^all labels have the probability 0$"):
        await judging(*[-1e9] * 5)


def test_labels_with_less_than_half_of_the_probability_are_a_warning():
    """The model would answer something else."""
    [note] = unsure(0.49, "1-5")

    assert () == unsure(0.5, "1-5")
    assert (Code.LOW_LABEL_MASS, True) == (note.code, note.text.startswith("the labels 1-5 have 0.49 of"))


def test_a_grade_is_one_call_with_the_whole_rubric():
    options = JudgeOptions(template="aesthetics", labels="A-E")
    length = len(RUBRICS["aesthetics"].text("a dog", "A-E"))

    assert {"vqa": Demand(1, length)} == demand_of("a dog", options)


def test_an_unknown_rubric_is_refused_with_the_names_of_all():
    with pytest.raises(ValueError, match=f"^must be one of {', '.join(RUBRICS)}$"):
        known("novelty")


def test_a_model_is_tried_with_each_kind_of_labels():
    """In a whole question about a known picture."""
    [(role, calls)] = essential().items()

    assert ("vqa", [tuple(labels) for labels in VALUES.values()]) == (role, [call.labels for call in calls])
    text = RUBRICS["semantic_consistency"].text
    assert [text(TEXTS[0], kind) for kind in VALUES] == [call.question for call in calls]
    assert {PICTURE} == {call.image for call in calls}
