"""Soft-TIFA: how likely the expected answer is, in all the ways of writing it."""

import pytest

from service.metrics.soft_tifa import fold, variants


def test_a_capital_of_the_expected_answer_makes_no_difference():
    """The same ways, so the same calls."""
    assert {*variants("green")} == {*variants("Green")}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("red", ["red", "Red"]),
        ("left of", ["left of", "Left of"]),
        ("four", ["four", "Four", "4"]),
        ("4", ["4", "four", "Four"]),
        ("Twelve", ["Twelve", "twelve", "12"]),
        ("Green", ["Green", "green"]),
        ("GREEN", ["GREEN", "green", "Green"]),
        ("yes", ["yes", "Yes"]),
        ("Yes", ["Yes", "yes"]),
        ("No", ["No", "no"]),
    ],
)
def test_an_answer_is_written_as_it_is_in_lower_case_and_capitalised_and_a_count_also_in_digits(
    answer, words
):
    """Each also after a space."""
    assert {word for plain in words for word in (plain, f" {plain}")} == set(variants(answer))
    assert len(set(variants(answer))) == len(variants(answer))


def test_scores_fold_into_one_of_two_means():
    """The geometric one of a score of 0 is small and no error."""
    assert 0.5 == pytest.approx(fold([0.25, 0.75], "arithmetic"))
    assert 0.5 == pytest.approx(fold([0.25, 1.0], "geometric"))
    assert 1e-6 == pytest.approx(fold([0.0, 1.0], "geometric"))
