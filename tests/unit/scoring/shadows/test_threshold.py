"""The threshold of a new model that keeps the pass rate of the old one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.scoring.shadows.threshold import kept_rate

RISING = np.arange(100.0)


def test_a_model_that_scores_higher_gets_a_higher_threshold():
    """Twice the scores and one more: the threshold moves alike, and the same 40 of 100 pass."""
    found = kept_rate(RISING, 2 * RISING + 1, 60.0)

    assert (60.0, 121.0, 0.4, 0.4, "") == (
        found.served,
        found.shadow,
        found.served_rate,
        found.shadow_rate,
        found.caution,
    )


def test_equal_models_keep_their_threshold():
    """A threshold that is a score itself stays as it is."""
    assert 60.0 == kept_rate(RISING, RISING, 60.0).shadow


def test_the_order_of_the_pairs_does_not_matter():
    """The rate is kept, whichever items pass."""
    assert 60.0 == kept_rate(RISING, RISING[::-1], 60.0).shadow


def test_where_lower_is_better_the_low_scores_pass():
    """30 of 100 have at most 29."""
    found = kept_rate(RISING, RISING + 5, 29.0, lower_is_better=True)

    assert (34.0, 0.3, 0.3) == (found.shadow, found.served_rate, found.shadow_rate)


def test_scores_that_are_equal_pass_together_and_that_is_said():
    """Half should pass, and the shadow gives 60 of 100 the same score: the nearest rate is 0.6."""
    found = kept_rate(RISING, np.array([0.0] * 40 + [1.0] * 60), 50.0)

    assert (1.0, 0.5, 0.6) == (found.shadow, found.served_rate, found.shadow_rate)
    assert "pass together" in found.caution


@pytest.mark.parametrize(("threshold", "rate", "who"), [(-1.0, 1.0, "all"), (100.0, 0.0, "none")])
def test_a_threshold_outside_the_scores_has_none_in_its_place(threshold, rate, who):
    """The pairs show no limit of the other model, so no number is given."""
    found = kept_rate(RISING, RISING, threshold)

    assert (None, None, rate) == (found.shadow, found.shadow_rate, found.served_rate)
    assert found.caution.startswith(who)


@pytest.mark.parametrize(("threshold", "few"), [(95.0, True), (90.0, False), (10.0, False), (5.0, True)])
def test_few_pairs_beyond_the_threshold_are_said(threshold, few):
    """On either side: 5 of 100 pass, or 95 do."""
    assert few is ("fewer than 10 pairs" in kept_rate(RISING, RISING, threshold).caution)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=50), st.integers(0, 9))
def test_the_rates_given_are_those_of_the_thresholds_and_no_other_is_nearer(pairs, threshold):
    """For scores with many ties, compared with every possible threshold."""
    served, shadow = np.array(pairs, float).T
    found = kept_rate(served, shadow, float(threshold))

    assert found.served_rate == np.mean(served >= threshold)
    if found.shadow is not None:
        assert found.shadow_rate == np.mean(shadow >= found.shadow)
        rates = [np.mean(shadow >= each) for each in shadow]
        nearest = min(abs(rate - found.served_rate) for rate in rates)
        assert abs(found.shadow_rate - found.served_rate) == pytest.approx(nearest)
