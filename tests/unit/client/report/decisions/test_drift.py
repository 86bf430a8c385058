"""Drift of scores: the population stability index and the test of Kolmogorov and Smirnov."""

import math
from itertools import pairwise

import numpy as np
import pytest

from scoregate.report.decisions.drift import Bins, drift


def plain_psi(reference, later, edges):
    """The formula, bin by bin in plain Python; a value at an edge is below it."""
    ends = [-math.inf, *edges, math.inf]
    bins = len(ends) - 1
    found = 0.0
    for low, high in pairwise(ends):
        p, q = (
            (sum(low < value <= high for value in each) + 0.5) / (len(each) + 0.5 * bins)
            for each in (reference, later)
        )
        found += (q - p) * math.log(q / p)
    return found


def distance(a, b):
    """The largest difference of two empirical distributions, at every value."""
    return max(abs(np.mean(a <= value) - np.mean(b <= value)) for value in [*a, *b])


@pytest.mark.parametrize(("size", "shift"), [(10, 0.0), (37, 0.3), (1000, 0.01), (1000, 2.0)])
def test_the_index_is_that_of_the_formula_over_ten_bins(size, shift):
    """With deciles that are computed by hand, between two values in order."""
    random = np.random.default_rng(size)
    reference, later = random.normal(size=size), random.normal(shift, size=size // 2)
    ordered = sorted(reference)
    edges = []
    for tenth in range(1, 10):
        place = (size - 1) * tenth / 10
        below = ordered[math.floor(place)]
        edges.append(below + (ordered[math.ceil(place)] - below) * (place - math.floor(place)))

    assert plain_psi(reference, later, edges) == pytest.approx(drift(reference, later).psi, rel=1e-9)
    assert 10 == Bins(reference).count


def test_equal_distributions_have_an_index_of_zero():
    """And one that moves into a single bin a large one."""
    reference = np.arange(100.0)

    assert 0 == drift(reference, reference).psi
    assert drift(reference, np.full(100, 99.5)).psi > 3


def test_a_value_on_which_several_deciles_fall_has_its_own_bin():
    """By hand: 30 of 0, 30 between and 40 of 1; a score just below 1 is another bin than 1."""
    reference = np.array([0.0] * 30 + [0.5 + n / 100 for n in range(30)] + [1.0] * 40)
    bins = Bins(reference)
    counts = bins.counts(reference)
    moved = drift(reference, np.where(reference == 1.0, 0.99, reference))

    assert 100 == counts.sum()
    assert [30, 40] == [counts[bins.counts(np.array([each])).argmax()] for each in (0.0, 1.0)]
    assert bins.counts(np.array([0.99])).argmax() != bins.counts(np.array([1.0])).argmax()
    assert moved.psi > 1


def test_a_constant_reference_shows_a_score_that_moves():
    """All deciles are one value: bins below it, of it, and above it."""
    reference = np.ones(50)
    p, q = [0.5 / 51.5, 50.5 / 51.5, 0.5 / 51.5], [25.5 / 51.5, 25.5 / 51.5, 0.5 / 51.5]
    by_hand = sum((b - a) * math.log(b / a) for a, b in zip(p, q, strict=True))

    assert by_hand == pytest.approx(drift(reference, np.array([1.0, 0.5] * 25)).psi)


def test_the_statistic_and_its_p_value_are_those_of_all_orders():
    """Of 6 later scores below all 12 of the reference: 2 of the 18!/(12! 6!) orders are so far apart."""
    reference, later = np.arange(12) + 100.0, np.arange(6.0)
    found = drift(reference, later)
    random = np.random.default_rng(1)
    a, b = random.normal(size=300), random.normal(0.2, size=150)

    assert 1.0 == found.ks
    assert 2 / math.comb(18, 6) == pytest.approx(found.p)
    assert distance(a, b) == pytest.approx(drift(a, b).ks)


def test_equal_scores_have_no_p_value():
    """Its distribution is that of continuous scores; the statistic and the index stay."""
    found = drift(np.arange(20.0), np.array([3.0, 3.0]))

    assert found.p is None
    assert "no p-value: equal scores" == found.note
    assert None not in (found.ks, found.psi)


@pytest.mark.parametrize(
    ("reference", "later", "note"),
    [
        (np.arange(9.0), np.arange(50.0), "fewer than 10 scores in the reference"),
        (np.arange(10.0), np.array([]), "no score after the reference"),
    ],
)
def test_too_few_scores_have_no_figure(reference, later, note):
    """But the reason."""
    found = drift(reference, later)

    assert (None, None, None, note) == (found.psi, found.ks, found.p, found.note)
