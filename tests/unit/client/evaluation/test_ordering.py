"""Wilcoxon's test against SciPy's, and what becomes of several ratings, zeros and gaps."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from scoregate.errors import ColumnError
from scoregate.evaluation.arrays import Scale
from scoregate.evaluation.ordering import ordering, signed_rank


@pytest.mark.parametrize("zero_method", ["wilcox", "pratt"])
@given(differences=st.lists(st.integers(-5, 5), min_size=2, max_size=40))
def test_it_is_scipys_asymptotic_test(zero_method, differences):
    """Uncorrected, with ties and zeros."""
    assume(any(differences))
    expected = wilcoxon(
        differences, zero_method=zero_method, correction=False, method="asymptotic", alternative="two-sided"
    )
    found = signed_rank(differences, zero_method)

    assert expected.pvalue == pytest.approx(found.p, abs=1e-12)
    assert expected.statistic == min(found.w_plus, found.w_minus)
    assert (differences.count(0), len(differences)) == (found.zeros, found.n + found.zeros)


def test_differences_that_are_equal_but_for_noise_are_ties():
    """0.3 - 0.2 is not 0.2 - 0.1 as floats."""
    tenths = np.array([0.3 - 0.2, 0.2 - 0.1, -(0.9 - 0.8), 0.7 - 0.5])

    assert signed_rank([1, 1, -1, 2]) == signed_rank(tenths)


def test_equal_generators_have_p_1():
    """SciPy would refuse."""
    found = ordering([1, 2, 1, 2], ["a", "a", "b", "b"], ["x", "y", "x", "y"])

    assert (0, 2, 1.0, "=") == tuple(
        getattr(found.pairs[0], name) for name in ("n", "zeros", "p", "relation")
    )


def test_several_ratings_of_an_item_are_averaged_inside_the_scale():
    """A 6 on a scale of 1 to 5 is no rating: it is counted."""
    found = ordering(
        [5, 4, 6, 1, 2, 3],
        ["a", "a", "a", "b", "b", "b"],
        ["x", "x", "x", "x", "x", "x"],
        scale=Scale(1, 5),
    )

    assert {"a": 4.5, "b": 2.0} == found.means
    assert (1, 5, 1) == (found.out_of_scale, found.ratings, found.items)


def test_with_people_the_scale_is_theirs():
    """A metric has another one."""
    found = ordering([0.1, 0.2, 0.3, 0.4], list("abab"), list("xxyy"), scale=Scale(1, 5), human=[1, 2, 1, 9])

    assert (4, 1) == (found.ratings, found.out_of_scale)
    assert 1.0 == found.agreement


def test_an_item_that_lacks_a_generator_is_counted():
    """It still counts for the pairs that have it."""
    found = ordering([1, 2, 3, 4, 5], list("aabbc"), list("xyxyx"))

    assert (2, 1) == (found.items, found.unpaired)
    assert [2, 1, 1] == [pair.n for pair in found.pairs]


def test_a_clear_difference_makes_two_tiers():
    """Twenty items, on all of which two generators beat the third by something."""
    random = np.random.default_rng(0)
    high, low = random.normal(5, 1, (2, 20)), random.normal(0, 1, 20)
    values = np.concatenate([high[0], high[1], low])
    found = ordering(values, ["a"] * 20 + ["b"] * 20 + ["c"] * 20, list(map(str, range(20))) * 3)

    assert [{"a", "b"}, {"c"}] == [set(tier) for tier in found.tiers]
    assert ["=", ">", ">"] == [pair.relation for pair in found.pairs]


@pytest.mark.parametrize(
    ("values", "models", "items", "argument"),
    [
        ([1, 2], ["a", "a"], ["x", "y"], "model"),
        ([1, 2], ["a", "b"], ["x", "y"], "item"),
        ([1, 1], ["a", "b"], ["x", "x"], "value"),
    ],
)
def test_what_cannot_be_ordered_is_refused(values, models, items, argument):
    """One generator, no common item, one value."""
    with pytest.raises(ColumnError) as caught:
        ordering(values, models, items)
    assert argument == caught.value.argument
