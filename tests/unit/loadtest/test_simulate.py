"""The simulation of GPUs, on cases that can be computed by hand."""

from random import Random
from statistics import mean

import pytest

from loadtest.simulate import Shape, perfect, simulated

pytestmark = pytest.mark.slow

FIXED = Shape(fixed_ms=100, per_call_ms=0, max_items=1)
GROWING = Shape(fixed_ms=100, per_call_ms=10, max_items=8)
shared_or_not = pytest.mark.parametrize("shared", [True, False])


def poisson(random, count, rate):
    """Arrivals at random times."""
    at, times = 0.0, []
    for _ in range(count):
        at += random.expovariate(rate)
        times.append(at)
    return times


@shared_or_not
def test_one_gpu_answers_one_after_the_other(shared):
    """100 ms each: the second waits for the first, and the third meets an idle GPU."""
    assert [0.1, 0.15, 0.1] == pytest.approx(simulated([0, 0.05, 0.5], 1, FIXED, shared=shared))


@shared_or_not
def test_what_comes_while_a_batch_runs_is_the_next_batch(shared):
    """The first alone (110 ms), then two together (120 ms)."""
    assert [0.11, 0.22, 0.21] == pytest.approx(simulated([0, 0.01, 0.02], 1, GROWING, shared=shared))


def test_gpus_that_share_a_queue_take_what_waits_when_they_become_free():
    """The first alone (110 ms), the second alone on the other GPU, the next two together (120 ms)."""
    took = simulated([0, 0.01, 0.02, 0.03], 2, GROWING, shared=True)

    assert [0.11, 0.11, 0.21, 0.2] == pytest.approx(took)


def test_a_call_goes_to_the_gpu_with_the_fewest():
    """Two calls on each: the third and the fourth wait for their own GPU."""
    assert [0.1, 0.1, 0.19, 0.18] == pytest.approx(
        simulated([0, 0, 0.01, 0.02], 2, FIXED, shared=False), abs=1e-9
    )


@pytest.mark.parametrize("share", [0.3, 0.8, 1.2])
@shared_or_not
def test_one_gpu_is_the_perfect_server(share, shared):
    """The recursion of `perfect`, written without any part of the service, to a nanosecond."""
    times = poisson(Random(1), 2000, share * GROWING.capacity)

    assert perfect(times, GROWING) == pytest.approx(simulated(times, 1, GROWING, shared=shared), abs=1e-9)


@pytest.mark.parametrize("busy", [0.3, 0.5, 0.7])
def test_the_mean_wait_of_poisson_arrivals_is_the_formula_for_m_d_1(busy):
    """busy * service / (2 * (1 - busy)): Pollaczek and Khinchine, without batches."""
    took = simulated(poisson(Random(2), 20_000, busy / 0.1), 1, FIXED, shared=True)

    assert busy * 0.1 / (2 * (1 - busy)) == pytest.approx(mean(took) - 0.1, rel=0.06)


@shared_or_not
def test_as_many_gpus_as_calls_answer_all_at_once(shared):
    """200 calls on 200 GPUs take as long as one."""
    assert [pytest.approx(0.1)] * 200 == simulated([0.0] * 200, 200, FIXED, shared=shared)
