"""How long a batch takes, learnt from those before it."""

import math
from math import inf
from random import Random

import pytest

from service.serving.batcher.cost_model import CostModel


def test_a_fixed_part_once_known_is_not_forgotten_over_batches_of_one_size():
    """A night of single calls tells nothing of it; yesterday did."""
    model = CostModel()
    for cost in (10, 20) * 20:
        model.observe(cost, seconds=1.0 + 0.1 * cost)
    for _ in range(1000):
        model.observe(10, seconds=2.0)

    assert pytest.approx((1.0, 0.1)) == (model.fixed_s, model.per_token_s)
    assert pytest.approx(12.0) == model.drain_s(100, largest=50)


def test_batches_of_one_size_tell_no_fixed_part():
    """All of it is laid on the tokens, so that larger batches are tried with care."""
    model = CostModel()
    assert (math.inf, 0.0) == (model.largest_within(1.0), model.drain_s(100, 1000))

    model.observe(cost=10, seconds=1.0)
    assert pytest.approx((0.0, 0.1, 50.0, 10.0)) == (
        model.fixed_s,
        model.per_token_s,
        model.largest_within(5.0),
        model.drain_s(100, 1000),
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
    assert pytest.approx(20.0) == model.drain_s(100, largest=1000)

    model = CostModel()
    for cost in (10, 20) * 50:
        model.observe(cost, seconds=1.0 + 0.1 * cost, gap_s=0.5)
    assert pytest.approx(2 * (1.0 + 0.5) + 10.0) == model.drain_s(100, largest=50)
    assert pytest.approx(1.0 + 0.5 + 1.0) == model.drain_s(10, largest=50)


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
def test_a_batch_without_tokens_or_time_says_nothing_of_the_best_pace(cost, seconds):
    """Nor of the fixed part."""
    model = CostModel()
    model.observe(cost, seconds)

    assert (inf, False) == (model.best_per_token_s, model.has_fixed_part)
