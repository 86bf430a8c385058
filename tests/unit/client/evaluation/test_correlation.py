"""Correlation, against SciPy's own functions."""

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from scoregate.errors import ColumnError
from scoregate.evaluation.agreement import correlation

ROWS = st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 5)), min_size=3, max_size=30)


@given(ROWS)
def test_all_three_are_scipys(rows):
    """With ties on both sides."""
    metric, human = (list(column) for column in zip(*rows, strict=True))
    assume(len({*metric}) > 1 and len({*human}) > 1)
    found = correlation(metric, human)

    expected = [each(metric, human).statistic for each in (stats.pearsonr, stats.spearmanr, stats.kendalltau)]
    assert expected == pytest.approx([found.pearson, found.spearman, found.kendall], abs=1e-12)
    assert len(rows) == found.n


@pytest.mark.parametrize("levels", [2, 5, 300])
def test_kendalls_tau_is_scipys_to_the_last_bit(levels):
    """Of few different ratings, which are counted in a table, and of many, which are sorted."""
    dice = random.Random(0)
    metric = [round(dice.gauss(0, 1), 2) for _ in range(400)]
    human = [round(value + dice.gauss(0, 1), 3) if levels > 5 else dice.randrange(levels) for value in metric]

    assert stats.kendalltau(metric, human).statistic == correlation(metric, human).kendall


@pytest.mark.parametrize(
    ("metric", "human", "argument"), [([1, 1], [1, 2], "metric"), ([1, 2], [1, 1], "human")]
)
def test_a_constant_column_has_no_correlation(metric, human, argument):
    """SciPy would say NaN."""
    with pytest.raises(ColumnError, match="all 2 values are 1") as caught:
        correlation(metric, human)
    assert argument == caught.value.argument
