"""Calls under way: equal ones share a flight, and what becomes of it when its callers leave."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest

from models.base import Image, LikelihoodCall
from service.context import Context
from service.errors import LaneFull, ModelFault, Overloaded
from service.serving.backend import LocalBackend
from service.serving.cache import OutcomeCache
from service.serving.device import Device, Resident
from service.serving.handle import BULK_KEPT_S, Handle
from service.serving.queue import Queue
from service.telemetry import LANES, Instruments
from tests.fakes import GREY, FakeVqa

pytestmark = pytest.mark.anyio


class Later:
    """The loop's `call_later`, which does what was left to it when it is told to."""

    def __init__(self):
        self.left = []

    def __call__(self, seconds, work):
        self.left.append((seconds, work))

    def come(self):
        for _, work in self.left:
            work()


@asynccontextmanager
async def serving(cache=None, **limits):
    """A model on a device, a handle on it, and the clock of what it does later."""
    model, later = FakeVqa(), Later()
    limits = {"max_items": 8, "max_cost": 1000, "max_waiting": 10_000, **limits}
    resident = Resident("vqa", model, Queue(**limits))
    with ThreadPoolExecutor(1) as cpu:
        async with Device([resident], Instruments(["vqa"])) as device:
            handle = Handle(LocalBackend(resident, device, dict.fromkeys(LANES, cpu)), cache, later)
            yield handle, model, later, resident
            await handle.aclose()


def context(lane="interactive", seconds=60.0):
    deadline = asyncio.get_running_loop().time() + seconds
    return Context("request", deadline, lane, Instruments(["vqa"]))


def call(question="Is it?", digest="grey"):
    return LikelihoodCall(Image(GREY.rgb, digest), question)


def asking(handle, *calls, lane="interactive", seconds=60.0):
    asked = context(lane, seconds)
    task = asyncio.create_task(handle.ask(calls, asked))
    return task, asked


async def held(handle, model):
    """The device is busy."""
    model.hold.clear()
    task, _ = asking(handle, call("busy"))
    while not model.held:
        await asyncio.sleep(0.001)
    return task


async def until(true):
    for _ in range(10_000):
        if true():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came")


def questions(model):
    return [call.question for call in model.calls]


async def test_equal_calls_run_once_and_each_caller_is_told_how_it_was_found():
    """One of them is a miss, the others coalesced; the next one, later, a hit."""
    async with serving(OutcomeCache(10**6)) as (handle, model, _, _):
        busy = await held(handle, model)
        asked = [asking(handle, call(), call("other")) for _ in range(5)]
        await until(lambda: 3 == handle.under_way)
        model.hold.set()
        results = [await task for task, _ in asked]
        _, after = late = asking(handle, call())
        await late[0]
        await busy

    assert 1 == len({str(result) for result in results})
    assert ["busy", "Is it?", "other"] == questions(model)
    assert ["miss"] + ["coalesced"] * 4 == [context.found for _, context in asked]
    assert "hit" == after.found


async def test_the_first_to_ask_may_leave_without_the_others_losing_their_answer():
    """The flight belongs to nobody."""
    async with serving() as (handle, model, _, _):
        busy = await held(handle, model)
        (first, _), (second, _) = asking(handle, call()), asking(handle, call())
        await until(lambda: 2 == handle.under_way)
        first.cancel()
        model.hold.set()
        [answer] = await second
        await busy

    assert not isinstance(answer, Exception)
    assert ["busy", "Is it?"] == questions(model)


async def test_interactive_work_that_nobody_waits_for_is_dropped_at_once():
    """It never reaches the device, and nothing of it is left."""
    async with serving() as (handle, model, later, resident):
        busy = await held(handle, model)
        task, _ = asking(handle, call())
        await until(lambda: resident.queue.depth("interactive"))
        task.cancel()
        await until(lambda: not resident.queue.depth("interactive"))
        model.hold.set()
        await busy
        await until(lambda: not handle.under_way)

    assert ["busy"] == questions(model)
    assert [] == later.left


async def test_a_bulk_call_waits_some_seconds_for_its_caller_to_come_back():
    """A trainer that sends its body again finds its place in the queue, and the answer runs once."""
    async with serving() as (handle, model, later, resident):
        busy = await held(handle, model)
        first, _ = asking(handle, call(), lane="bulk")
        other, _ = asking(handle, call("behind it"), lane="bulk")
        await until(lambda: 2 == resident.queue.depth("bulk"))
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        again, found = asking(handle, call(), lane="bulk")
        await until(lambda: found.lookups)
        later.come()
        model.hold.set()
        [answer] = await again
        await asyncio.gather(busy, other)

    assert [BULK_KEPT_S] == [seconds for seconds, _ in later.left]
    assert not isinstance(answer, Exception)
    assert ["busy", "Is it?", "behind it"] == questions(model)
    assert "coalesced" == found.found


async def test_a_bulk_call_whose_caller_stays_away_is_dropped_in_the_end():
    """After those seconds nobody waits and nothing is left."""
    async with serving() as (handle, model, later, resident):
        busy = await held(handle, model)
        task, _ = asking(handle, call(), lane="bulk")
        await until(lambda: resident.queue.depth("bulk"))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert 1 == resident.queue.depth("bulk")
        later.come()
        await until(lambda: not resident.queue.depth("bulk"))
        model.hold.set()
        await busy

    assert ["busy"] == questions(model)


async def test_an_urgent_caller_lifts_the_call_that_he_joins():
    """It leaves the bulk lane, and goes before the bulk calls that came first."""
    async with serving(max_items=1) as (handle, model, _, resident):
        busy = await held(handle, model)
        ahead, _ = asking(handle, call("ahead"), lane="bulk")
        await until(lambda: 1 == resident.queue.depth("bulk"))
        bulk, _ = asking(handle, call(), lane="bulk")
        await until(lambda: 2 == resident.queue.depth("bulk"))
        urgent, _ = asking(handle, call())
        await until(lambda: 1 == resident.queue.depth("interactive"))
        model.hold.set()
        await asyncio.gather(busy, ahead, bulk, urgent)

    assert ["busy", "Is it?", "ahead"] == questions(model)


async def test_a_failure_reaches_all_who_wait_and_is_not_kept():
    """The next one asks anew."""
    async with serving(OutcomeCache(10**6)) as (handle, model, _, _):
        example = model.example()
        model.fault = lambda one: None if one == example else ValueError()
        failed = [
            outcome for task, _ in (asking(handle, call()), asking(handle, call())) for outcome in await task
        ]
        model.fault = lambda one: None
        [fine] = await asking(handle, call())[0]

    assert [ModelFault, ModelFault] == [type(outcome) for outcome in failed]
    assert not isinstance(fine, Exception)
    assert 0 == handle.under_way


async def test_a_caller_who_runs_out_of_time_is_told_where():
    """In the queue, or on the model."""
    async with serving() as (handle, model, _, resident):
        busy = await held(handle, model)
        waiting, queued = asking(handle, call())
        await until(lambda: resident.queue.depth("interactive"))
        waiting.cancel()
        running, on_model = asking(handle, call("busy"))
        await until(lambda: on_model.lookups)
        running.cancel()
        await asyncio.gather(waiting, running, return_exceptions=True)
        model.hold.set()
        await busy

    assert ("queue", "model") == (queued.stage, on_model.stage)


@pytest.mark.parametrize(("lane", "kind"), [("interactive", LaneFull), ("bulk", Overloaded)])
async def test_a_full_lane_is_refused_with_the_time_in_which_it_drains(lane, kind):
    """Before any work is done, and after it where others came first meanwhile."""
    async with serving(max_waiting=20, max_items=1) as (handle, model, _, resident):
        for _ in range(50):
            resident.queue.finished(cost=10, seconds=2.0)
        busy = await held(handle, model)
        asked = [asking(handle, call(name), lane=lane)[0] for name in ("a", "b", "one too many")]
        [outcome] = await asked.pop()
        with pytest.raises(kind) as refused:
            handle.admit(context(lane))
        model.hold.set()
        await asyncio.gather(busy, *asked)

    assert kind is type(outcome)
    assert 4.0 < refused.value.retry_after_s < 6.5


async def test_what_nobody_waits_for_any_more_is_not_prepared():
    """Decoding for callers who have left would keep the others waiting."""
    async with serving() as (handle, model, _, resident):
        prepared, door = [], threading.Event()
        prepare = model.prepare

        def slow(one):
            prepared.append(one.question)
            door.wait(10)
            return prepare(one)

        model.prepare = slow
        first, _ = asking(handle, call("first"))
        gone, _ = asking(handle, call("gone"), call("gone too"))
        await until(lambda: prepared and 2 == len(resident.queue.coming.groups))
        gone.cancel()
        await until(lambda: 1 == len(resident.queue.coming.groups))
        door.set()
        await first

    assert ["first"] == prepared


async def test_interactive_work_that_would_come_too_late_is_refused_with_the_time_to_wait():
    """Bulk work waits instead: trainers crash on refusals."""
    async with serving() as (handle, model, _, resident):
        for _ in range(50):
            resident.queue.finished(cost=10, seconds=2.0)
        busy = await held(handle, model)
        behind, _ = asking(handle, call(), lane="interactive")
        await until(lambda: resident.queue.depth("interactive"))

        with pytest.raises(LaneFull) as refused:
            handle.admit(context(seconds=3.0))
        handle.admit(context(seconds=10.0))
        handle.admit(context("bulk", seconds=3.0))
        model.hold.set()
        await asyncio.gather(busy, behind)

    assert 3.0 < refused.value.retry_after_s < 4.5
