"""The simulation of fleets, on cases that can be computed by hand."""

from random import Random
from statistics import mean

import pytest

from loadtest.simulate import Fleet, Request, Shape, perfect, predicted

pytestmark = pytest.mark.slow

FIXED = Shape(fixed_ms=100, per_call_ms=0, max_items=1)
GROWING = Shape(fixed_ms=100, per_call_ms=10, max_items=8)


def single(*times, lane="interactive"):
    """Requests of one call each."""
    return [Request(at, 1, lane) for at in times]


def test_one_server_answers_one_after_the_other():
    """100 ms each: the second waits for the first, and the third meets an idle server."""
    assert [0.1, 0.15, 0.1] == pytest.approx(Fleet(1, FIXED).run(single(0, 0.05, 0.5)))


def test_what_comes_while_a_batch_runs_is_the_next_batch():
    """The first alone (110 ms), then two together (120 ms)."""
    took = Fleet(1, GROWING).run(single(0, 0.01, 0.02))

    assert [0.11, 0.22, 0.21] == pytest.approx(took)


def test_a_request_is_answered_with_its_last_call():
    """Two images with five questions: a batch of eight (180 ms), then one of two (120 ms)."""
    assert [0.3] == pytest.approx(Fleet(1, GROWING).run([Request(0, 10, "bulk")]))


def test_two_servers_share_a_request_where_calls_are_spread_and_not_behind_a_balancer():
    """Four calls on each (140 ms), or eight on one (180 ms)."""
    request = [Request(0, 8, "bulk")]

    assert [0.14] == pytest.approx(Fleet(2, GROWING).run(request))
    assert [0.18] == pytest.approx(Fleet(2, GROWING, routing="balancer").run(request))


def test_servers_that_share_a_queue_take_what_waits_when_they_become_free():
    """The first alone (110 ms), the second alone on the other server, the next two together (120 ms)."""
    took = Fleet(2, GROWING, routing="queue").run(single(0, 0.01, 0.02, 0.03))

    assert [0.11, 0.11, 0.21, 0.2] == pytest.approx(took)


def test_a_balancer_sends_a_request_to_the_server_with_the_fewest():
    """Two requests at once run side by side, and a third waits."""
    assert [0.1, 0.1, 0.2] == pytest.approx(Fleet(2, FIXED, routing="balancer").run(single(0, 0, 0)))


def test_a_server_that_has_done_its_work_gets_the_next():
    """The first is free at 100 ms, the second at 1,000 ms: it gets neither of those that come later."""
    shape = Shape(fixed_ms=0, per_call_ms=100, max_items=1)
    requests = [*single(0), Request(0, 10, "interactive"), *single(0.15, 0.35)]

    assert [0.1, 1.0, 0.1, 0.1] == pytest.approx(Fleet(2, shape, routing="balancer").run(requests))


def test_interactive_calls_overtake_bulk():
    """A bulk burst of five batches waits; the interactive call is in the next one."""
    requests = [Request(0, 40, "bulk"), *single(0.01)]
    bulk, interactive = Fleet(1, GROWING).run(requests)

    assert 0.17 + 0.18 >= interactive
    assert bulk > 5 * 0.18


@pytest.mark.parametrize("share", [0.3, 0.8, 1.2])
def test_one_lane_on_one_server_is_the_perfect_server(share):
    """The recursion of `perfect`, written without any part of the service, to a nanosecond."""
    random, at, times = Random(1), 0.0, []
    for _ in range(2000):
        at += random.expovariate(share * GROWING.capacity)
        times.append(at)

    assert perfect(times, GROWING) == pytest.approx(Fleet(1, GROWING).run(single(*times)), abs=1e-9)


@pytest.mark.parametrize("busy", [0.3, 0.5, 0.7])
def test_the_mean_wait_of_poisson_arrivals_is_the_formula_for_m_d_1(busy):
    """busy * service / (2 * (1 - busy)): Pollaczek and Khinchine, without batches."""
    random, at, times = Random(2), 0.0, []
    for _ in range(20_000):
        at += random.expovariate(busy / 0.1)
        times.append(at)
    fleet = Fleet(1, FIXED)
    waits = [seconds - 0.1 for seconds in fleet.run(single(*times))]

    assert busy * 0.1 / (2 * (1 - busy)) == pytest.approx(mean(waits), rel=0.06)
    assert busy == pytest.approx(fleet.busy_s / fleet.ended_s, rel=0.03)


def test_as_many_servers_as_calls_answer_all_at_once():
    """1,000 calls on 1,000 GPUs take as long as one."""
    p99_s = predicted(single(*[0.0] * 1000), 1000, FIXED, request_s=0.005)

    assert {"interactive": pytest.approx(0.105)} == p99_s
