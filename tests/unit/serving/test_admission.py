"""What is refused before any work, and work that is not begun since nobody waits for it."""

import asyncio
import threading
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from service.core.errors import LaneFull, Overloaded, TooLarge
from service.serving.admission import AdmissionForecast, Demand
from service.serving.cache import NO_CACHE
from service.serving.handle import Handle
from tests.support.fakes import HELD_S
from tests.support.handles import asking, call, context, held, serving, until

pytestmark = pytest.mark.anyio

# The fake's batches take no time by this clock, so a cost model learns from the tests alone.
at_rest = partial(serving, clock=lambda: 0.0)


@pytest.mark.parametrize(("lane", "kind"), [("interactive", LaneFull), ("bulk", Overloaded)])
async def test_a_full_lane_is_refused_with_the_time_in_which_it_drains(lane, kind):
    """Before any work is done; calls of a request that was admitted wait."""
    async with at_rest(max_waiting=20, max_items=1) as (handle, model, _, hosted):
        for _ in range(50):
            hosted.queue.finished(cost=10, seconds=2.0)
        busy = await held(handle, model)
        asked = [asking(handle, call(name), lane=lane)[0] for name in ("a", "b")]
        await until(lambda: 2 == hosted.queue.depth[lane])
        with pytest.raises(kind) as refused:
            handle.admit(context(lane), Demand())
        model.hold.set()
        await asyncio.gather(busy, *asked)

    assert pytest.approx(6.0, rel=0.01) == refused.value.retry_after_s
    assert f"the {lane} lane of {handle.name} is full" == refused.value.detail


async def test_a_model_that_cannot_be_called_is_refused_with_the_reason():
    """In place of its lane, which has room."""
    full = AdmissionForecast(full=True, wait_s=0.0, run_s=0.0, drain_s=0.0)
    backend = SimpleNamespace(name="vqa", missing="no replica is ready", forecast=lambda *_: full)

    with pytest.raises(LaneFull, match=r"^vqa: no replica is ready$"):
        Handle(backend, NO_CACHE).admit(context(), Demand())


async def test_what_nobody_waits_for_any_more_is_not_prepared():
    """Decoding for callers who have left would keep the others waiting."""
    async with serving() as (handle, model, _, hosted):
        prepared, door = [], threading.Event()
        prepare = model.prepare

        def slow(one):
            prepared.append(one.question)
            door.wait(10)
            return prepare(one)

        model.prepare = slow
        first, _ = asking(handle, call("first"))
        gone, _ = asking(handle, call("gone"), call("gone too"))
        await until(lambda: prepared and 2 == len(hosted.queue.pending.groups))
        gone.cancel()
        await until(lambda: 1 == len(hosted.queue.pending.groups))
        door.set()
        await first

    assert ["first"] == prepared


async def test_interactive_work_that_would_come_too_late_is_refused_with_the_time_to_wait():
    """Bulk work waits instead: trainers crash on refusals."""
    async with at_rest() as (handle, model, _, hosted):
        for _ in range(50):
            hosted.queue.finished(cost=10, seconds=2.0)
        busy = await held(handle, model)
        behind, _ = asking(handle, call(), lane="interactive")
        await until(lambda: hosted.queue.depth["interactive"])

        with pytest.raises(LaneFull) as refused:
            handle.admit(context(seconds=3.0), Demand())
        handle.admit(context(seconds=10.0), Demand())
        handle.admit(context("bulk", seconds=3.0), Demand())
        model.hold.set()
        await asyncio.gather(busy, behind)

    assert pytest.approx(4.0, rel=0.01) == refused.value.retry_after_s


async def learns(handle, hosted):
    """Calls have 10 tokens, and a token takes 0.1 s."""
    await asking(handle, call("the first"))[0]
    for cost in (10, 20) * 50:
        hosted.queue.finished(cost, 0.1 * cost)


async def test_interactive_work_that_would_not_be_done_in_time_is_refused_before_any_of_it():
    """100 calls of one second each; bulk work may take longer than it has."""
    async with at_rest() as (handle, _, _, hosted):
        await learns(handle, hosted)
        with pytest.raises(LaneFull, match=r"115\.0 s, and 9\d\.\d s are left") as refused:
            handle.admit(context(seconds=99.05), Demand(calls=100))
        handle.admit(context(seconds=120.0), Demand(calls=100))
        handle.admit(context("bulk", seconds=1.0), Demand(calls=100))

    assert refused.value.retry_after_s is None, "nobody is before it, so to wait would not help"


async def test_an_idle_model_tries_what_fits_into_one_batch_whatever_time_is_left():
    """Its cost is known roughly, and nobody waits behind it for long."""
    async with at_rest() as (handle, _, _, hosted):
        await learns(handle, hosted)
        handle.admit(context(seconds=0.01), Demand(calls=8))
        with pytest.raises(LaneFull, match=r", and 0\.0 s are left$"):
            handle.admit(context(seconds=-1.0), Demand(calls=9))


async def test_long_texts_are_part_of_what_a_request_costs():
    """Four characters beyond the usual are a token: 4,400 of them in one call are a thousand."""
    async with at_rest(max_cost=100) as (handle, _, _, hosted):
        await learns(handle, hosted)
        handle.admit(context(seconds=90.0), Demand(calls=2, characters=800))
        with pytest.raises(LaneFull, match="would need 117"):
            handle.admit(context(seconds=90.0), Demand(calls=2, characters=4800))


async def test_nothing_is_refused_on_a_guess():
    """A model that has only been asked single calls may take eight at once in the same time."""
    async with at_rest() as (handle, _, _, hosted):
        for _ in range(50):
            hosted.queue.finished(cost=10, seconds=1.0)
        handle.admit(context(seconds=20.0), Demand(calls=100))
        with pytest.raises(LaneFull):
            handle.admit(context(seconds=14.0), Demand(calls=100))


async def test_nothing_is_refused_because_a_model_is_slow_for_the_moment():
    """It was seen to do it in time; that is forgotten slowly."""
    async with at_rest() as (handle, _, _, hosted):
        await learns(handle, hosted)
        for cost in (10, 20) * 50:
            hosted.queue.finished(cost, 1.0 * cost)
        handle.admit(context(seconds=150.0), Demand(calls=100))
        for cost in (10, 20) * 500:
            hosted.queue.finished(cost, 1.0 * cost)
        with pytest.raises(LaneFull):
            handle.admit(context(seconds=150.0), Demand(calls=100))


async def ran(handle, model, now, seconds, *texts):
    """A batch of these calls took so long."""
    model.hold.clear()
    task, _ = asking(handle, *(call(text, text) for text in texts))
    await until(lambda: model.held)
    now[0] += seconds
    model.hold.set()
    await task


async def test_after_a_slow_spell_an_idle_device_tries_again_within_ten_seconds():
    """Nothing else could correct the prediction, which is right after ten good batches."""
    now, two_batches = [0.0], Demand(calls=8)
    async with serving(clock=lambda: now[0], max_items=4) as (handle, model, _, hosted):
        for _ in range(5000):
            hosted.queue.finished(cost=4 * 10, seconds=2.2)
        await ran(handle, model, now, 2.2, *"abcd")
        with pytest.raises(LaneFull, match=r"would need 5\.1 s, and 2\.0 s are left"):
            handle.admit(context(seconds=2.0), two_batches)
        now[0] += 9.9
        with pytest.raises(LaneFull):
            handle.admit(context(seconds=2.0), two_batches)

        now[0] += 0.1
        handle.admit(context(seconds=2.0), two_batches)
        trial = handle.backend.reserve("interactive", two_batches, parts=1)
        with pytest.raises(LaneFull):
            handle.admit(context(seconds=2.0), two_batches)
        trial.close()
        for n in range(10):
            await ran(handle, model, now, 0.2, *(f"{n} {text}" for text in "abcd"))
        assert pytest.approx(0.4) == handle.backend.forecast("interactive", two_batches).run_s
        handle.admit(context(seconds=2.0), two_batches)


async def test_what_was_admitted_counts_once_while_it_is_prepared_and_when_it_waits():
    """In the time to wait, and in whether the lane is full."""
    async with at_rest(max_waiting=40, max_items=1, max_cost=10) as (handle, model, _, hosted):
        await learns(handle, hosted)
        busy, door, prepare = await held(handle, model), threading.Event(), model.prepare
        model.prepare = lambda one: (door.wait(HELD_S), prepare(one))[1]
        reserved = handle.backend.reserve("bulk", Demand(calls=4), parts=1)
        asked = replace(context("bulk"), queued=lambda name: reserved.begin_part())

        def seen():
            forecast = handle.backend.forecast("bulk", Demand())
            return forecast.full, forecast.drain_s - busy_s

        busy_s = handle.backend.forecast("interactive", Demand()).wait_s
        assert (True, pytest.approx(4.0, abs=0.1)) == seen()
        task = asyncio.create_task(handle.call([call(text, text) for text in "abcd"], asked))
        await until(lambda: hosted.queue.pending.groups)
        assert (True, pytest.approx(4.0, abs=0.1)) == seen()
        door.set()
        await until(lambda: 4 == hosted.queue.depth["bulk"])
        assert (True, pytest.approx(4.0, abs=0.1)) == seen()
        model.hold.set()
        await asyncio.gather(busy, task)


@pytest.mark.parametrize("lane", ["interactive", "bulk"])
async def test_no_request_may_ask_for_more_than_half_of_a_lane(lane):
    """It is too large whatever else waits, and is told to send less; one batch is never too large."""
    async with serving(max_waiting=8000) as (handle, _, _, _):
        handle.admit(context(lane), Demand(calls=400))
        with pytest.raises(TooLarge, match="split it"):
            handle.admit(context(lane), Demand(calls=401))

    async with serving(max_waiting=1, max_cost=80) as (handle, _, _, _):
        handle.admit(context(lane), Demand(calls=8))


@pytest.mark.parametrize(("lane", "kind"), [("interactive", LaneFull), ("bulk", Overloaded)])
async def test_what_was_admitted_and_not_asked_for_yet_fills_a_lane_and_keeps_no_call_out(lane, kind):
    """The lane takes no more requests, and those that it took are served; what has begun counts no longer."""
    async with at_rest(max_waiting=8000) as (handle, _, _, hosted):
        await learns(handle, hosted)
        reserved = [handle.backend.reserve(lane, Demand(calls=200), parts=100) for _ in range(4)]
        with pytest.raises(kind) as refused:
            handle.admit(context(lane), Demand())
        [answer] = await asking(handle, call(), lane=lane)[0]
        reserved[0].begin_part()
        handle.admit(context(lane), Demand())
        for reservation in reserved:
            reservation.close()

    assert pytest.approx(800.0, rel=0.01) == refused.value.retry_after_s
    assert not isinstance(answer, Exception)
    assert pytest.approx(0.0) == hosted.queue.reserved[lane]


async def test_a_neighbour_does_not_wait_for_all_that_a_large_request_has_reserved():
    """They take turns: a small request is served after as much of the other's, a large one after more."""
    async with at_rest(max_waiting=80_000) as (handle, _, _, hosted):
        await learns(handle, hosted)
        with_much_left = handle.backend.reserve("interactive", Demand(calls=1000), parts=1000)
        handle.admit(context(seconds=5.0), Demand())
        handle.admit(context(seconds=240.0), Demand(calls=100))
        with pytest.raises(LaneFull) as refused:
            handle.admit(context(seconds=220.0), Demand(calls=100))
        with_much_left.close()

    assert pytest.approx(1000.0, rel=0.01) == refused.value.retry_after_s
