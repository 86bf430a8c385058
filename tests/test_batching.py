"""Queues and batches: what is decided, and that everyone gets exactly one answer."""

import asyncio
import math
from collections import deque

import pytest

from models.base import Prepared
from service.errors import Draining, LaneFull, ModelFault
from service.serving.batching import Entry, Queue, take_batch
from service.serving.budget import Budget
from service.serving.device import Device, Resident
from service.serving.single_flight import SingleFlight
from service.telemetry import Instruments
from tests.fakes import FakeVqa, chance

pytestmark = pytest.mark.anyio


def entry(cost=1, due=0.0, lane="interactive"):
    outcome = asyncio.get_running_loop().create_future()
    return Entry(Prepared(cost, None), lane, due, due, outcome)


def lanes(interactive=(), bulk=()):
    return {"interactive": deque(interactive), "bulk": deque(bulk)}


async def test_the_oldest_go_first_and_lanes_mix_by_when_they_are_due():
    """Bulk is due later than it arrived, so interactive overtakes it, but not for ever."""
    early, late = entry(due=1.0), entry(due=3.0)
    bulk = entry(due=2.0, lane="bulk")

    batch = take_batch(lanes([early, late], [bulk]), max_items=9, max_cost=9)
    assert [early, bulk, late] == batch


async def test_a_batch_ends_at_its_cost_and_at_its_number():
    """Whatever comes first."""
    entries = [entry(cost=4) for _ in range(4)]

    assert 2 == len(take_batch(lanes(entries), max_items=9, max_cost=8))
    assert 3 == len(take_batch(lanes(entries), max_items=3, max_cost=99))


async def test_a_call_too_costly_for_any_batch_goes_alone():
    """No call can block a queue for good."""
    huge, small = entry(cost=100), entry()

    waiting = lanes([huge, small])
    assert [huge] == take_batch(waiting, max_items=9, max_cost=8)
    assert [small] == take_batch(waiting, max_items=9, max_cost=8)


async def test_callers_who_left_cost_nothing():
    """Their entries are dropped when a batch is taken."""
    gone, there = entry(), entry()
    gone.outcome.cancel()

    assert [there] == take_batch(lanes([gone, there]), max_items=1, max_cost=1)


async def test_an_old_bulk_call_goes_before_a_new_interactive_one():
    """Ageing: after `bulk_waits_s` a bulk call has its turn."""
    queue = Queue(max_items=1, max_cost=9, max_waiting=9, bulk_waits_s=2.0)
    bulk = queue.put(Prepared(1, "bulk"), "bulk", now=0.0)
    soon = queue.put(Prepared(1, "soon"), "interactive", now=1.0)
    late = queue.put(Prepared(1, "late"), "interactive", now=2.5)

    assert [[soon], [bulk], [late]] == [queue.take() for _ in range(3)]


async def test_a_full_lane_predicts_when_it_will_have_drained():
    """The wait is the waiting cost over the measured rate; the other lane is still open."""
    queue = Queue(max_items=9, max_cost=9, max_waiting=30, bulk_waits_s=2.0)
    queue.note_drained(cost=10, seconds=2.0)
    for _ in range(3):
        queue.put(Prepared(10, None), "bulk", now=0.0)

    queue.admit("interactive")
    with pytest.raises(LaneFull) as refused:
        queue.put(Prepared(10, None), "bulk", now=0.0)
    assert pytest.approx(6.0) == refused.value.retry_after_s


async def test_what_waits_is_counted_once_however_it_leaves():
    """Taken or cancelled, in whatever order: the depth and the cost come back to nothing."""
    queue = Queue(max_items=2, max_cost=99, max_waiting=99, bulk_waits_s=2.0)
    entries = [queue.put(Prepared(10, n), "bulk", now=0.0) for n in range(5)]
    entries[1].outcome.cancel()
    await asyncio.sleep(0)
    assert 4 == queue.depth("bulk")

    batch = queue.take()
    batch[0].outcome.cancel()
    await asyncio.sleep(0)
    assert [0, 2] == [entry.prepared.data for entry in batch]
    assert 2 == queue.depth("bulk")
    assert [3, 4] == [entry.prepared.data for entry in queue.take()]
    assert 0 == queue.depth("bulk")


async def test_a_loop_that_ended_by_itself_is_not_alive():
    """Nobody would be served any more: stalled without end, and its callers are told."""
    served, resident = device(Words())
    async with served:
        resident.queue.take = lambda: 1 / 0
        entry = served.submit(resident, Prepared(1, 0), "bulk")
        await asyncio.wait([served._task])

        assert math.inf == served.stalled_for()
        with pytest.raises(ZeroDivisionError):
            served._task.result()
        served._task = None
        del resident.queue.take
        entry.outcome.cancel()


def device(model, *, instruments=None):
    queue = Queue(max_items=8, max_cost=1000, max_waiting=1000, bulk_waits_s=2.0)
    resident = Resident("vqa", model, queue)
    return Device([resident], instruments or Instruments(["vqa"])), resident


class Words(FakeVqa):
    """Answers with the call itself."""

    def answer(self, call):
        return call


async def test_every_caller_gets_the_answer_to_his_own_call():
    """Same length, same order, also when one caller leaves in between."""
    served, resident = device(Words())
    async with served:
        entries = [served.submit(resident, Prepared(1, n), "bulk") for n in range(20)]
        entries[3].outcome.cancel()
        kept = [entry for entry in entries if not entry.outcome.cancelled()]
        answers = [await entry.outcome for entry in kept]

    assert [n for n in range(20) if n != 3] == answers


async def test_closing_answers_everyone_who_waits():
    """Nobody is left without an answer, and nobody new is taken."""
    model = Words()
    served, resident = device(model)
    async with served:
        model.hold.clear()
        entries = [served.submit(resident, Prepared(1, n), "bulk") for n in range(20)]
        asyncio.get_running_loop().call_later(0.01, model.hold.set)
    outcomes = [await entry.outcome for entry in entries]

    assert all(isinstance(outcome, int | Draining) for outcome in outcomes)
    with pytest.raises(Draining):
        served.submit(resident, Prepared(1, 0), "bulk")


async def test_an_outcome_too_few_is_a_fault_not_a_shift():
    """A model that loses a call fails the batch; no answer goes to the wrong caller."""
    model = Words()
    served, resident = device(model)
    async with served:
        model.score = lambda batch: [None] * (len(batch) - 1)
        entries = [served.submit(resident, Prepared(1, n), "bulk") for n in range(3)]
        outcomes = [await entry.outcome for entry in entries]

    assert all(isinstance(outcome, ModelFault) for outcome in outcomes)


async def test_one_poisoned_call_fails_alone():
    """A failing batch is halved until the bad call stands alone."""
    model = Words()
    model.fault = lambda call: ValueError() if call == 5 else None
    served, resident = device(model)
    async with served:
        entries = [served.submit(resident, Prepared(1, n), "bulk") for n in range(8)]
        outcomes = [await entry.outcome for entry in entries]

    assert isinstance(outcomes.pop(5), ModelFault)
    assert [0, 1, 2, 3, 4, 6, 7] == outcomes


async def test_a_device_that_stands_still_is_told_from_an_idle_one():
    """Stalled means work and no finished batch; idle for an hour is no stall."""
    now = 0.0
    model = Words()
    queue = Queue(max_items=1, max_cost=10, max_waiting=100, bulk_waits_s=0.0)
    resident = Resident("vqa", model, queue)
    async with Device([resident], Instruments(["vqa"]), clock=lambda: now) as served:
        now = 3600.0
        assert 0.0 == served.stalled_for()
        model.hold.clear()
        entry = served.submit(resident, Prepared(1, 0), "bulk")
        while queue.depth("bulk"):
            await asyncio.sleep(0)
        now = 3700.0
        assert 100.0 == served.stalled_for()
        model.hold.set()
        await entry.outcome
        assert 0.0 == served.stalled_for()


async def test_work_is_done_once_however_many_ask():
    """Everyone who comes while it is under way joins; the next one starts anew."""
    flights, gate, begun = SingleFlight(), asyncio.Event(), []

    async def work():
        begun.append(1)
        await gate.wait()
        return "done"

    tasks = [asyncio.create_task(flights.do("key", work)) for _ in range(24)]
    await asyncio.sleep(0)
    tasks[0].cancel()  # the one who began it leaves
    await asyncio.sleep(0)
    gate.set()
    results = await asyncio.gather(*tasks[1:])

    assert [("done", True)] * 23 == results
    assert 1 == len(begun)
    assert ("done", False) == await flights.do("key", work)


async def test_a_failure_reaches_all_who_wait_and_is_forgotten():
    """A failed flight is not kept."""
    flights = SingleFlight()

    async def fail():
        raise ValueError

    outcomes = await asyncio.gather(*(flights.do("key", fail) for _ in range(3)), return_exceptions=True)
    assert [ValueError] * 3 == [type(outcome) for outcome in outcomes]
    assert 0 == len(flights)


async def test_a_budget_is_never_overdrawn_and_serves_in_order():
    """The fourth waits until the first has given back; one who leaves holds nothing."""
    budget = Budget(10)
    most = 0

    async def work(amount):
        nonlocal most
        async with budget.hold(amount):
            most = max(most, budget.held)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(work(amount)) for amount in (4, 4, 4, 10, 1, 1)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert 0 == budget.held
    assert most <= 10


def test_fakes_spread_their_scores():
    """The fake's numbers lie strictly between 0 and 1."""
    assert all(0 < chance(str(n)) < 1 for n in range(1000))
