"""How long a batch takes, learnt from those before it."""

import math
from math import inf
from random import Random

import pytest

from service.serving.batcher.batching import CostModel


def test_a_fixed_part_once_known_is_not_forgotten_over_batches_of_one_size():
    """A night of single calls tells nothing of it; yesterday did."""
    model = CostModel()
    for cost in (10, 20) * 20:
        model.observe(cost, seconds=1.0 + 0.1 * cost)
    for _ in range(1000):
        model.observe(10, seconds=2.0)

    assert pytest.approx((1.0, 0.1)) == (model.fixed_s, model.per_token_s)
    assert pytest.approx(12.0) == model.estimate_s(100, largest=50)


def test_batches_of_one_size_tell_no_fixed_part():
    """All of it is laid on the tokens, so that larger batches are tried with care."""
    model = CostModel()
    assert (math.inf, 0.0) == (model.largest_within(1.0), model.estimate_s(100, 1000))

    model.observe(cost=10, seconds=1.0)
    assert pytest.approx((0.0, 0.1, 50.0, 10.0)) == (
        model.fixed_s,
        model.per_token_s,
        model.largest_within(5.0),
        model.estimate_s(100, 1000),
    )


def test_costs_that_hardly_differ_tell_no_fixed_part():
    """Single calls of a tenth more or less: how long they take is noise, and a slope through it nonsense."""
    model = CostModel()
    for cost, seconds in ((100, 0.1), (110, 0.4), (95, 0.1), (105, 0.3)) * 5:
        model.observe(cost, seconds)

    assert not model.has_fixed_part
    model.observe(200, 0.5)
    model.observe(400, 0.9)
    assert model.has_fixed_part


def test_rounding_never_makes_a_token_take_less_than_no_time():
    """Larger batches that were faster leave nothing for a token."""
    random = Random(1)
    for _ in range(200):
        model = CostModel()
        for _ in range(10):
            cost = random.randint(1, 8) * 10
            model.observe(cost, random.uniform(0.5, 1) / cost)
        assert model.per_token_s >= 0
        assert model.largest_within(inf) == inf


def test_work_that_waits_takes_as_long_as_that_before_it_and_the_gaps_between():
    """Before the fixed part is known all of it is in the tokens; then each batch has its own part and gap."""
    model = CostModel()
    model.observe(cost=10, seconds=1.5, gap_s=0.5)
    assert pytest.approx(20.0) == model.estimate_s(100, largest=1000)

    model = CostModel()
    for cost in (10, 20) * 50:
        model.observe(cost, seconds=1.0 + 0.1 * cost, gap_s=0.5)
    assert pytest.approx(2 * (1.0 + 0.5) + 10.0) == model.estimate_s(100, largest=50)
    assert pytest.approx(1.0 + 0.5 + 1.0) == model.estimate_s(10, largest=50)


def test_once_the_fixed_part_is_known_no_batch_is_larger_than_fits():
    """However large the usual ones are."""
    model = CostModel()
    for cost in (10, 20) * 20:
        model.observe(cost, seconds=1.0 + 0.1 * cost)

    assert pytest.approx(20.0) == model.largest_within(3.0)


def test_a_batch_that_takes_just_the_time_allowed_lets_a_larger_one_be_tried():
    """While the fixed part is unknown."""
    model = CostModel()
    model.observe(cost=10, seconds=1.0)

    assert pytest.approx(25.0) == model.largest_within(1.0)


@pytest.mark.parametrize(("cost", "seconds"), [(0, 1.0), (10, 0.0)])
def test_a_batch_without_tokens_or_time_says_nothing_of_how_quick_others_can_be(cost, seconds):
    """Nor of the fixed part."""
    model = CostModel()
    model.observe(cost, seconds)
    assert (0.0, False) == (model.least_s(100, 1000), model.has_fixed_part)

    model.observe(cost=10, seconds=1.0)
    assert pytest.approx(model.estimate_s(10, 10)) == model.least_s(10, 10)


def test_no_work_takes_less_than_the_quickest_batch_and_the_best_pace():
    """Half a second for any batch, and a tenth of one for a token, however slow later batches are."""
    model = CostModel()
    for cost, seconds in ((1, 0.5), (10, 1.0)):
        model.observe(cost, seconds)
    for cost in (1, 10) * 20:
        model.observe(cost, seconds=60.0)

    assert pytest.approx((0.5, 10.0), rel=0.05) == (model.least_s(1, 100), model.least_s(100, 100))
    assert model.estimate_s(100, 100) > 59.0


def test_a_bound_is_never_above_the_estimate():
    """Larger batches may have a better pace than any before, and one call takes less than a full batch."""
    model = CostModel()
    for cost in (10, 20) * 20:
        model.observe(cost, seconds=1.0 + 0.1 * cost)
    assert pytest.approx(2 * 1.0 + 100.0) == model.least_s(1000, largest=500)

    model = CostModel()
    for _ in range(20):
        model.observe(cost=80, seconds=0.8)
    assert pytest.approx(0.1) == model.least_s(10, largest=80)


def test_the_best_pace_is_forgotten_slowly():
    """A thousand slower batches raise the bound to 2.7 times itself."""
    model = CostModel()
    for cost in (10, 20) * 2:
        model.observe(cost, seconds=0.1 * cost)
    for cost in (10, 20) * 500:
        model.observe(cost, seconds=1.0 * cost)

    assert pytest.approx(2.7 * 100.0, rel=0.01) == model.least_s(1000, largest=80)


def test_after_a_slow_spell_the_first_good_batch_corrects_the_bound():
    """However long the spell was; the estimate follows within some batches."""
    model = CostModel()
    for _ in range(5000):
        model.observe(cost=40, seconds=2.2)
    assert pytest.approx(4.4) == model.least_s(80, largest=40)
    model.observe(cost=40, seconds=0.2)
    assert pytest.approx(0.4) == model.least_s(80, largest=40)
