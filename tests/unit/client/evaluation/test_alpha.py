"""Krippendorff's alpha, against the package `krippendorff`."""

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoregate.errors import ColumnError
from scoregate.evaluation.arrays import Scale
from scoregate.evaluation.raters import LEVELS, alpha

TABLES = st.lists(st.lists(st.none() | st.integers(1, 5), min_size=3, max_size=3), min_size=2, max_size=12)


def columns(table):
    """Unit, rater and rating of the cells that are there."""
    cells = [(f"u{u}", f"r{r}", x) for u, row in enumerate(table) for r, x in enumerate(row) if x is not None]
    return zip(*cells, strict=True) if cells else ((), (), ())


@given(TABLES)
def test_it_is_what_the_package_gives(table):
    """At all levels, with ratings missing."""
    try:
        found = alpha(*columns(table))
    except ColumnError:
        return  # nothing to compare
    matrix = np.array([[np.nan if x is None else x for x in row] for row in table], dtype=float).T

    for level in LEVELS:
        expected = krippendorff.alpha(reliability_data=matrix, level_of_measurement=level)
        assert expected == pytest.approx(getattr(found, level), abs=1e-9)


def test_ratings_off_the_scale_are_counted_and_left_out():
    """And a unit with one rating says nothing."""
    table = [[1, 5, 9], [2, 2, None], [3, 0, None]]
    found = alpha(*columns(table), scale=Scale(1, 5))

    assert (2, 4, 2, 1) == (found.units, found.ratings, found.out_of_scale, found.single)


def test_extreme_disagreement_is_two_points_of_five():
    """That is 40 % of the scale or more."""
    table = [[1, 3], [1, 2], [5, 5], [1, 5]]

    assert 0.5 == alpha(*columns(table), scale=Scale(1, 5)).extreme_disagreement


def test_a_bootstrap_encloses_the_value_and_can_be_repeated():
    """The same seed gives the same interval."""
    random = np.random.default_rng(0)
    true = random.integers(1, 6, 100)
    table = [[int(np.clip(each + random.integers(-1, 2), 1, 5)) for _ in range(3)] for each in true]
    first, again, other = (alpha(*columns(table), bootstrap=200, seed=seed) for seed in (0, 0, 1))

    assert first == again
    assert first.intervals != other.intervals
    for level, (low, high) in first.intervals.items():
        assert low < getattr(first, level) < high


@pytest.mark.parametrize(
    ("rows", "scale", "argument", "said"),
    [
        ([("u", "r", 1), ("v", "r", 2)], None, "rater", "one rater"),
        ([("u", "r", 1), ("u", "r", 2), ("u", "s", 1)], None, "unit", "r rated u 2 times"),
        ([("u", "r", 3), ("u", "s", 3)], None, "rating", "all 2 ratings are 3"),
        ([("u", "r", 1), ("v", "s", 2)], None, "unit", "no unit has two"),
        ([("u", "r", 8), ("u", "s", 9)], Scale(1, 5), "rating", "1:5"),
    ],
)
def test_what_has_no_agreement_is_refused(rows, scale, argument, said):
    """One annotator, a duplicate, equal ratings, no pair, nothing on the scale."""
    with pytest.raises(ColumnError, match=said) as caught:
        alpha(*zip(*rows, strict=True), scale=scale)
    assert argument == caught.value.argument
