"""The comparison of two models by pairs of their scores."""

import numpy as np
import pytest

from service.scoring.shadows.comparison import MIN_PAIRS, compare, ranks
from service.scoring.shadows.pairs import Pairs


def pairs_of(served, shadow, size=1000):
    pairs = Pairs(size)
    for pair in zip(served, shadow, strict=True):
        pairs.add(*pair)
    return pairs


def test_few_pairs_have_a_caution_and_no_figures():
    """One less than the least number."""
    compared = compare(pairs_of(range(MIN_PAIRS - 1), range(MIN_PAIRS - 1)))

    assert (29, None, "29 pairs; figures need 30") == (compared.pairs, compared.figures, compared.caution)


def test_the_figures_are_those_of_the_pairs():
    """A model of the same order on another scale: Spearman's is 1, Pearson's is not."""
    served = np.arange(40.0)
    figures = compare(pairs_of(served, served**3)).figures

    assert (19.5, pytest.approx(served.std(ddof=1))) == (figures.served.mean, figures.served.sd)
    assert np.median(served**3) == figures.shadow.quantiles["0.5"]
    assert np.mean(served**3 - served) == pytest.approx(figures.difference.mean)
    assert 1 == pytest.approx(figures.spearman)
    assert np.corrcoef(served, served**3)[0, 1] == pytest.approx(figures.pearson)
    assert [40, 40] == [sum(figures.histogram.served), sum(figures.histogram.shadow)]
    assert len(figures.histogram.edges) == len(figures.histogram.served) + 1


def test_a_model_with_one_score_has_no_correlation():
    """It is undefined, and not 0."""
    figures = compare(pairs_of(range(40), [1.0] * 40)).figures

    assert (None, None) == (figures.pearson, figures.spearman)


@pytest.mark.parametrize("least", [0.0, 0.5, -1000.0])
def test_scores_that_differ_by_rounding_have_a_histogram(least):
    """Their range holds no 40 numbers; the edges rise, and each score is counted."""
    found = compare(pairs_of([least, np.nextafter(least, 1)] * 20, [least] * 40)).figures.histogram

    assert [40, 40] == [sum(found.served), sum(found.shadow)]
    assert sorted(set(found.edges)) == found.edges


def test_equal_scores_share_the_middle_rank():
    """As Spearman's correlation needs it."""
    assert [2.5, 1, 2.5, 4] == ranks(np.array([5.0, 3.0, 5.0, 9.0])).tolist()


def test_the_oldest_pairs_are_dropped():
    """Of 50 pairs the last 40 stay."""
    figures = compare(pairs_of(range(50), range(50), size=40))

    assert 40 == figures.pairs
    assert np.mean(range(10, 50)) == figures.figures.served.mean


def test_thresholds_are_the_given_ones_or_the_quantiles():
    """And the shadow's quantile stands where a quantile of the served model stood."""
    pairs = pairs_of(range(100), range(100, 200))

    assert [(50.0, 150.0)] == [
        (each.served, each.shadow) for each in compare(pairs, [50.0]).figures.thresholds
    ]
    by_quantile = compare(pairs).figures.thresholds
    assert [each.served + 100 for each in by_quantile if each.shadow] == [
        each.shadow for each in by_quantile if each.shadow
    ]
