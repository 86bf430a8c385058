"""Grades: what a judge is asked and shown, and what its labels' probabilities come to."""

from math import log

import pytest

from service.metrics.judge import mean
from service.metrics.rubrics.rubric import RUBRICS, VALUES, read

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
    read("a_file", GOOD)
    with pytest.raises(ValueError, match=told) as refusal:
        read("a_file", text)
    assert "the rubric a_file" in str(refusal.value)


@pytest.mark.parametrize("name", RUBRICS)
def test_each_rubric_names_its_paper(name):
    """By authors, year and number."""
    assert RUBRICS[name].paper in {
        "Ku et al. 2023, arXiv 2312.14867",
        "Eldesokey et al. 2026, arXiv 2605.13223",
    }
