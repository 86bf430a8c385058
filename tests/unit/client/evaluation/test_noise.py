"""What is tied: one rule for all figures, whatever floats' additions left of a value."""

import numpy as np
import pytest

from scoregate.errors import ColumnError
from scoregate.evaluation.agreement import auroc, correlation, roc
from scoregate.evaluation.pair_accuracy import pair_accuracy, preference
from scoregate.evaluation.raters import alpha
from scoregate.evaluation.ts2 import ts2
from scoregate.evaluation.winoground import winoground

TENTHS = [3, 3, 6, 1, 2, 3, 7, 6]
PLAIN = [tenth / 10 for tenth in TENTHS]
NOISY = [0.1 + 0.2, 0.3, 0.2 + 0.4, 0.1, 0.1 + 0.1, 0.3, 0.1 * 7, 0.6]  # of the same value as PLAIN
HUMAN = [1, 2, 5, 3, 1, 2, 4, 5]
LABELS = [1, 0, 1, 0, 0, 1, 1, 0]
GROUPS = list("aabbccaa")
FIGURES = {
    "correlation": lambda column: correlation(column, HUMAN),
    "pair accuracy": lambda column: pair_accuracy(column, HUMAN),
    "preference": lambda column: preference(column, HUMAN, GROUPS),
    "auroc": lambda column: auroc(column, LABELS),
    "the curve": lambda column: [list(each) for each in roc(np.array(column), np.array(LABELS))],
    "winoground": lambda column: winoground(column[:4], ["x"] * 4, list("0011"), list("0110")),
    "alpha": lambda column: alpha(GROUPS, list("pqpqpqrs"), column),
    "ts2": lambda column: ts2(column, ["g"] * 8, list("00112233"), "current"),
}


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_every_figure_ties_the_same_values(figure):
    """0.1 + 0.2 is 0.3 for ranks, for pairs and for areas."""
    assert NOISY != PLAIN
    assert figure(PLAIN) == figure(NOISY)


def test_kendall_and_pairs_count_the_same_ties():
    """Tau-b has the pairs that `pair_accuracy` orders and ties at a distance of 0."""
    tau, pairs = correlation(NOISY[:6], HUMAN[:6]).kendall, pair_accuracy(NOISY[:6], HUMAN[:6])
    tied = sum(a == b for i, a in enumerate(PLAIN[:6]) for b in PLAIN[:i])

    assert 3 == tied
    assert pytest.approx(correlation(PLAIN[:6], HUMAN[:6]).kendall) == tau
    assert pairs == pair_accuracy(PLAIN[:6], HUMAN[:6])


def test_a_column_that_differs_by_noise_alone_is_constant():
    """It says nothing, and every figure says so."""
    for figure in (correlation, pair_accuracy, auroc):
        with pytest.raises(ColumnError, match=r"all 3 values are 0\.3"):
            figure([0.1 + 0.2, 0.3, 0.3], [1, 0, 1])
