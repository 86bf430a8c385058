"""Queues and batches: what is decided, and that everyone gets exactly one answer."""

import asyncio
import math
from collections import deque

import pytest
import torch

from models.base import Likelihood, Prepared
from service.errors import Draining, LaneFull, ModelFault, Overloaded
from service.serving.batching import Entry, Queue, Shares, Ticket, take_batch
from service.serving.budget import Budget
from service.serving.device import Device, Resident
from service.serving.pace import Pace
from service.serving.single_flight import SingleFlight
from service.telemetry import Instruments
from tests.fakes import FakeVqa, chance

pytestmark = pytest.mark.anyio

EVEN = Shares(1.0, 1.0)


def entry(cost=1, arrived=0.0, lane="interactive", deadline=math.inf):
    outcome = asyncio.get_running_loop().create_future()
    return Entry(Prepared(cost, None), Ticket(lane, deadline), arrived, outcome)


def taken(interactive=(), bulk=(), *, shares=EVEN, credit=0.0, now=0.0, max_items=99, max_cost=99):
    lanes = {"interactive": deque(interactive), "bulk": deque(bulk)}
    return take_batch(lanes, shares, credit, now, max_items=max_items, max_cost=max_cost)


def queue(**limits):
    return Queue(**{"max_items": 9, "max_cost": 99, "max_waiting": 999, **limits})


# --- which calls are next -----------------------------------------------------------------------


async def test_interactive_calls_go_first_and_bulk_calls_fill_what_is_left():
    """Within a lane the oldest goes first."""
    early, late, bulk = entry(), entry(), entry(lane="bulk")

    assert [early, late, bulk] == taken([early, late], [bulk], shares=Shares(9.0, 1.0))[0]


async def test_bulk_calls_get_their_share_of_every_batch_while_both_wait():
    """With weights 4 to 1, every fifth token is theirs, in this batch or a later one."""
    shares = Shares(4.0, 1.0, ageing_s=1e9)
    lanes = {
        "interactive": deque(entry() for _ in range(100)),
        "bulk": deque(entry(lane="bulk") for _ in range(100)),
    }
    credit, got = 0.0, []
    for _ in range(10):
        batch, credit = take_batch(lanes, shares, credit, 0.0, max_items=5, max_cost=99)
        got += [entry.ticket.lane for entry in batch]

    assert 10 == got.count("bulk")


async def test_bulk_calls_get_more_the_longer_they_wait_but_never_most():
    """Ageing: the share doubles with each `ageing_s`, up to one token for each interactive one."""
    shares = Shares(9.0, 1.0, ageing_s=10.0)

    assert pytest.approx([1 / 9, 2 / 9, 1.0]) == [shares.owed(waited) for waited in (0.0, 10.0, 1e6)]


async def test_a_share_is_not_saved_up_while_there_is_nothing_to_spend_it_on():
    """Where no bulk call is left, the credit is gone."""
    assert 0.0 == taken([entry()], [entry(lane="bulk")], credit=50.0)[1]


async def test_a_batch_ends_at_its_cost_and_at_its_number():
    """Whatever comes first."""
    assert 2 == len(taken([entry(cost=4) for _ in range(4)], max_cost=8)[0])
    assert 3 == len(taken([entry(cost=4) for _ in range(4)], max_items=3)[0])


async def test_a_call_too_costly_for_any_batch_goes_alone():
    """No call can block a queue for good."""
    huge, small = entry(cost=100), entry()

    assert [huge] == taken([huge, small], max_cost=8)[0]


async def test_callers_who_left_and_calls_that_are_too_late_never_reach_the_device():
    """The one is dropped, the other is told which stage it ran out of time in."""
    gone, late, there = entry(), entry(deadline=1.0), entry()
    gone.outcome.cancel()

    assert [there] == taken([gone, late, there], now=1.0, max_items=1)[0]
    assert "stage queue" in late.outcome.result().detail


# --- what waits ---------------------------------------------------------------------------------


async def test_a_full_lane_predicts_when_it_will_have_drained():
    """Interactive is refused with 429, bulk with 503, each after the waiting cost over the measured rate."""
    waiting = queue(max_waiting=30)
    waiting.finished(cost=10, seconds=2.0)
    for lane in ("interactive", "bulk"):
        for _ in range(3):
            waiting.put(Prepared(10, None), Ticket(lane), now=0.0)

    for lane, kind in (("interactive", LaneFull), ("bulk", Overloaded)):
        with pytest.raises(kind) as refused:
            waiting.put(Prepared(10, None), Ticket(lane), now=0.0)
        assert pytest.approx(6.0) == refused.value.retry_after_s


async def test_what_waits_is_counted_once_however_it_leaves():
    """Taken or cancelled, in whatever order: the depth and the cost come back to nothing."""
    waiting = queue(max_items=2)
    entries = [waiting.put(Prepared(10, n), Ticket("bulk"), now=0.0) for n in range(5)]
    entries[1].outcome.cancel()
    await asyncio.sleep(0)
    assert (4, 40) == (waiting.depth("bulk"), waiting.cost("bulk"))

    batch = waiting.take(0.0)
    batch[0].outcome.cancel()
    await asyncio.sleep(0)
    assert [0, 2] == [entry.prepared.data for entry in batch]
    assert (2, 20) == (waiting.depth("bulk"), waiting.cost("bulk"))
    assert [3, 4] == [entry.prepared.data for entry in waiting.take(0.0)]
    assert (0, 0, "") == (waiting.depth("bulk"), waiting.cost("bulk"), waiting.waiting)


async def test_a_lifted_call_takes_its_place_by_arrival():
    """Before interactive calls that came later, behind those that came earlier."""
    waiting = queue()
    first = waiting.put(Prepared(1, None), Ticket("interactive"), now=1.0)
    bulk = waiting.put(Prepared(1, None), Ticket("bulk"), now=2.0)
    last = waiting.put(Prepared(1, None), Ticket("interactive"), now=3.0)
    waiting.lift(bulk)

    assert (3, 0) == (waiting.depth("interactive"), waiting.depth("bulk"))
    assert [first, bulk, last] == waiting.take(4.0)


async def test_a_batch_stays_under_its_time_by_the_measured_pace():
    """Batches of 10 and 20 tokens took 2 and 3 seconds: 1 + 0.1 n, so that 4 seconds hold 30 tokens."""
    waiting = queue(max_batch_s=4.0)
    for _ in range(20):
        waiting.finished(cost=10, seconds=2.0)
        waiting.finished(cost=20, seconds=3.0)
    for _ in range(9):
        waiting.put(Prepared(10, None), Ticket("bulk"), now=0.0)

    assert pytest.approx((1.0, 0.1)) == (waiting.pace.fixed, waiting.pace.slope)
    assert 3 == len(waiting.take(0.0))


async def test_out_of_memory_halves_the_budget_which_recovers_slowly():
    """From 80 tokens to 40, and back in a dozen batches or so."""
    waiting = queue(max_cost=80, max_items=99)
    waiting.ran_out_of_memory(cost=80)
    sizes = []
    for _ in range(20):
        for _ in range(9):
            waiting.put(Prepared(10, None), Ticket("bulk"), now=0.0)
        sizes.append(len(waiting.take(0.0)))
        waiting.finished(cost=1, seconds=0.0)
        while waiting.take(0.0):
            pass

    assert (4, 8) == (sizes[0], sizes[-1])
    assert sizes == sorted(sizes)
    assert 8 not in sizes[:10]


def test_a_pace_of_one_size_of_batch_knows_no_fixed_part():
    """All of it is laid on the tokens, so that larger batches are tried with care."""
    pace = Pace()
    assert (math.inf, 0.0) == (pace.within(1.0), pace.drains(100))

    pace.note(cost=10, seconds=1.0)
    assert pytest.approx((0.0, 0.1, 50.0, 10.0)) == (
        pace.fixed,
        pace.slope,
        pace.within(5.0),
        pace.drains(100),
    )


# --- the device ---------------------------------------------------------------------------------


def device(*models, instruments=None, **options):
    """A device that serves *models*, and their residents; `limits` are the queues'."""
    limits = {"max_items": 8, "max_cost": 1000, "max_waiting": 10_000, **options.pop("limits", {})}
    residents = [Resident(f"m{n}", model, Queue(**limits)) for n, model in enumerate(models)]
    names = [resident.name for resident in residents]
    return Device(residents, instruments or Instruments(names), **options), *residents


class Words(FakeVqa):
    """Answers with the call itself."""

    def answer(self, call):
        return call


def put(served, resident, *words, lane="bulk"):
    return [served.submit(resident, Prepared(1, word), Ticket(lane)) for word in words]


async def outcomes_of(entries):
    return [await entry.outcome for entry in entries]


async def holding(model, served, resident):
    """The device is busy with one call of *model*."""
    model.hold.clear()
    [busy] = put(served, resident, "busy")
    while not model.held:
        await asyncio.sleep(0.001)
    return busy


async def test_a_loop_that_ended_by_itself_is_not_alive():
    """Nobody would be served any more: stalled without end, and its callers are told."""
    served, resident = device(Words())
    async with served:
        resident.queue.take = lambda now: 1 / 0
        [entry] = put(served, resident, 0)
        await asyncio.wait([served._task])

        assert math.inf == served.stalled_for()
        with pytest.raises(ZeroDivisionError):
            served._task.result()
        served._task = None
        del resident.queue.take
        entry.outcome.cancel()


async def test_every_caller_gets_the_answer_to_his_own_call():
    """Same length, same order, also when one caller leaves in between."""
    served, resident = device(Words())
    async with served:
        entries = put(served, resident, *range(20))
        entries.pop(3).outcome.cancel()

        assert [n for n in range(20) if n != 3] == await outcomes_of(entries)


async def test_who_is_in_a_batch_is_decided_when_the_device_is_free():
    """What came while it was busy, most urgent first, is the next batch."""
    model = Words()
    served, resident = device(model, limits={"max_items": 2})
    async with served:
        busy = await holding(model, served, resident)
        bulk = put(served, resident, "b1", "b2")
        urgent = put(served, resident, "u1", lane="interactive")
        model.hold.set()
        await outcomes_of([busy, *bulk, *urgent])

    assert [["busy"], ["u1", "b1"], ["b2"]] == model.batches[2:]


async def test_models_take_turns_by_what_their_batches_took():
    """With a weight of 9, one model's interactive calls get nine batches to one of another's bulk calls."""
    now = 0.0

    class Second(Words):
        def score(self, batch):
            nonlocal now
            now += 1.0
            return super().score(batch)

    urgent, bulk = Second(), Second()
    served, first, second = device(urgent, bulk, limits={"max_items": 1}, clock=lambda: now)
    order = []
    urgent.answer = bulk.answer = lambda word: order.append(word) or word
    async with served:
        order.clear()
        entries = [
            *(entry for n in range(40) for entry in put(served, first, "urgent", lane="interactive")),
            *(entry for n in range(40) for entry in put(served, second, "bulk")),
        ]
        await outcomes_of(entries)

    assert 4 == order[:40].count("bulk")


async def test_an_idle_device_lingers_only_where_it_was_told_to():
    """With `linger_ms` the first call waits for company until its batch is full."""
    model = Words()
    served, resident = device(model, limits={"max_items": 3, "linger_s": 60.0})
    async with served:
        first = put(served, resident, 1)
        await asyncio.sleep(0)
        rest = put(served, resident, 2, 3)
        await outcomes_of(first + rest)

    assert [[1, 2, 3]] == model.batches[2:]


async def test_a_call_dropped_as_the_device_looks_for_it_does_not_stop_the_event_loop():
    """It counts as waiting until its future's callbacks have run; the device lets them run, and goes on."""
    looks = iter(range(100))  # a loop that never lets go would use them up, and end there
    served, resident = device(Words(), clock=lambda: float(next(looks)))
    async with served:
        [gone] = put(served, resident, "gone")
        gone.outcome.cancel()
        await asyncio.sleep(0)
        [there] = put(served, resident, "there")

        assert "there" == await there.outcome
        assert served.running


async def test_closing_answers_everyone_who_waits():
    """Nobody is left without an answer, and nobody new is taken."""
    model = Words()
    served, resident = device(model)
    async with served:
        busy = await holding(model, served, resident)
        entries = [busy, *put(served, resident, *range(20))]
        asyncio.get_running_loop().call_soon(model.hold.set)
    outcomes = await outcomes_of(entries)

    assert "busy" == outcomes[0]
    assert all(isinstance(outcome, Draining) for outcome in outcomes[1:])
    with pytest.raises(Draining):
        put(served, resident, 0)


async def test_an_outcome_too_few_is_a_fault_not_a_shift():
    """A model that loses a call fails the batch; no answer goes to the wrong caller."""
    model = Words()
    served, resident = device(model)
    async with served:
        whole = model.score
        model.score = lambda batch: whole(batch)[: len(batch) - (len(batch) > 1)]
        busy = await holding(model, served, resident)
        entries = put(served, resident, *range(3))
        model.hold.set()
        outcomes = await outcomes_of(entries)
        await busy.outcome

    assert all(isinstance(outcome, ModelFault) for outcome in outcomes)


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
async def test_a_number_that_is_not_finite_is_a_fault_of_its_call(broken):
    """Its neighbours in the batch keep their answers."""
    model = FakeVqa()
    served, resident = device(model)
    sound = Likelihood((-0.1,), -0.1, -3.0)
    model.answer = lambda call: Likelihood((broken,), -0.1, -3.0) if call == "bad" else sound
    async with served:
        fine, bad = await outcomes_of(put(served, resident, "fine", "bad"))

    assert fine == sound
    assert isinstance(bad, ModelFault)


async def test_one_poisoned_call_fails_alone():
    """A failing batch is halved until the bad call stands alone."""
    model = Words()
    model.fault = lambda call: ValueError() if call == 5 else None
    served, resident = device(model)
    async with served:
        outcomes = await outcomes_of(put(served, resident, *range(8)))

        assert isinstance(outcomes.pop(5), ModelFault)
        assert [0, 1, 2, 3, 4, 6, 7] == outcomes
        assert served.running


async def test_a_batch_too_large_for_memory_is_split_and_smaller_ones_follow():
    """Everyone is answered; the next batches stay under what failed."""
    model = Words()
    whole = model.score

    def score(batch):
        if len(batch) > 4:
            raise torch.OutOfMemoryError
        return whole(batch)

    served, resident = device(model)
    async with served:
        model.score = score
        busy = await holding(model, served, resident)
        entries = put(served, resident, *range(16))
        model.hold.set()
        await busy.outcome

        assert list(range(16)) == await outcomes_of(entries)
    assert [1, 4, 4, 4, 4] == [len(batch) for batch in model.batches[2:]]


async def test_a_fault_that_sticks_fails_everyone_at_once_and_is_told():
    """When even the example fails, nothing will work again: no call is tried on and on."""
    model, told = Words(), []
    served, resident = device(model, on_broken=told.append)
    async with served:
        busy = await holding(model, served, resident)
        entries = put(served, resident, *range(20))
        model.fault = lambda call: RuntimeError("CUDA error: an illegal access\nmore")
        model.hold.set()
        outcomes = await outcomes_of([busy, *entries])

        assert all(isinstance(outcome, ModelFault) for outcome in outcomes)
        assert ["the model m0 fails on everything since RuntimeError: CUDA error: an illegal access"] == told
        assert not served.running
        assert math.inf == served.stalled_for()
        with pytest.raises(Draining):
            put(served, resident, 0)


async def test_the_wait_is_told_from_the_pace_of_what_is_before():
    """Waiting work at its measured rate, and what is left of the batch under way."""
    now = 0.0
    model = Words()
    served, resident = device(model, clock=lambda: now)
    async with served:
        for _ in range(50):
            resident.queue.finished(cost=1, seconds=2.0)
        busy = await holding(model, served, resident)
        now = 0.5
        assert pytest.approx(1.5, rel=0.01) == served.wait_s("interactive")

        entries = put(served, resident, 1, 2, lane="interactive")
        assert pytest.approx(5.5, rel=0.01) == served.wait_s("interactive")

        entries += put(served, resident, 3)
        assert pytest.approx(1.5 + 4 * 10 / 9, rel=0.01) == served.wait_s("interactive")
        assert pytest.approx(7.5, rel=0.01) == served.wait_s("bulk")
        model.hold.set()
        await outcomes_of([busy, *entries])


async def test_a_device_that_stands_still_is_told_from_an_idle_one():
    """Stalled means work and no finished batch; idle for an hour is no stall."""
    now = 0.0
    model = Words()
    served, resident = device(model, clock=lambda: now)
    async with served:
        now = 3600.0
        assert 0.0 == served.stalled_for()
        busy = await holding(model, served, resident)
        now = 3700.0
        assert 100.0 == served.stalled_for()
        model.hold.set()
        await busy.outcome
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


async def test_the_urgent_get_their_share_of_a_budget_first():
    """Whoever has the most patience waits, also where he came first."""
    budget, order = Budget(10), []

    async def work(name, urgent):
        async with budget.hold(10, urgent):
            order.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(work("first", False), work("patient", False), work("urgent", True))

    assert ["first", "urgent", "patient"] == order


def test_fakes_spread_their_scores():
    """The fake's numbers lie strictly between 0 and 1."""
    assert all(0 < chance(str(n)) < 1 for n in range(1000))
