"""A device: batches in their turns, and that everyone gets exactly one answer."""

import asyncio

import pytest

from models.families.fake.model import chance
from service.core.errors import DeadlineExceeded, Draining
from service.serving.admission import Demand
from tests.support.devices import Words, device, holding, outcomes_of, put, submitted

pytestmark = pytest.mark.anyio


async def test_every_caller_gets_the_answer_to_his_own_call():
    """Same length, same order, also when one caller leaves in between."""
    served, hosted = device(Words())
    async with served:
        calls = put(served, hosted, *range(20))
        calls.pop(3).result.cancel()

        assert [n for n in range(20) if n != 3] == await outcomes_of(calls)


async def test_who_is_in_a_batch_is_decided_when_the_device_is_free():
    """What came while it was busy, most urgent first, is the next batch."""
    model = Words()
    served, hosted = device(model, limits={"max_items": 2}, clock=lambda: 0.0)
    async with served:
        busy = await holding(model, served, hosted)
        bulk = put(served, hosted, "b1", "b2")
        urgent = put(served, hosted, "u1", lane="interactive")
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
        calls = [
            *(call for n in range(40) for call in put(served, first, "urgent", lane="interactive")),
            *(call for n in range(40) for call in put(served, second, "bulk")),
        ]
        await outcomes_of(calls)

    assert 4 == order[:40].count("bulk")


async def test_a_call_whose_time_passes_while_the_device_is_busy_is_never_run():
    """It is told so; others that came with it are answered."""
    now = 0.0
    model = Words()
    served, hosted = device(model, clock=lambda: now)
    async with served:
        busy = await holding(model, served, hosted)
        late = submitted(served, hosted, "late", "bulk", deadline=5.0)
        [there] = put(served, hosted, "there")
        now = 5.0
        model.hold.set()
        outcomes = await outcomes_of([busy, late, there])

    assert ["busy", DeadlineExceeded, "there"] == [outcomes[0], type(outcomes[1]), outcomes[2]]
    assert ["busy", "there"] == [word for batch in model.batches[2:] for word in batch]


async def test_a_call_dropped_as_the_device_looks_for_it_does_not_stop_the_event_loop():
    """It counts as waiting until its future's callbacks have run; the device lets them run, and goes on."""
    looks = iter(range(100))  # a loop that never lets go would use them up, and end there
    served, hosted = device(Words(), clock=lambda: float(next(looks)))
    async with served:
        [gone] = put(served, hosted, "gone")
        gone.result.cancel()
        await asyncio.sleep(0)
        [there] = put(served, hosted, "there")

        assert ["there"] == await outcomes_of([there])
        assert served.running


async def test_closing_answers_everyone_who_waits():
    """Nobody is left without an answer, and nobody new is taken."""
    model = Words()
    served, hosted = device(model)
    async with served:
        busy = await holding(model, served, hosted)
        calls = [busy, *put(served, hosted, *range(20))]
        asyncio.get_running_loop().call_soon(model.hold.set)
    outcomes = await outcomes_of(calls)

    assert "busy" == outcomes[0]
    assert all(isinstance(outcome, Draining) for outcome in outcomes[1:])
    with pytest.raises(Draining):
        put(served, hosted, 0)


async def test_the_wait_is_told_from_the_pace_of_what_is_before():
    """Waiting work at its measured rate, and what is left of the batch under way."""
    now = 0.0
    model = Words()
    served, hosted = device(model, clock=lambda: now, limits={"max_items": 1})
    async with served:
        for _ in range(50):
            hosted.queue.finished(cost=1, seconds=2.0)
        busy = await holding(model, served, hosted)
        now = 0.5
        assert (
            pytest.approx(1.5, rel=0.01)
            == served.scheduler.forecast(hosted, "interactive", Demand(), served.clock()).wait_s
        )

        calls = put(served, hosted, 1, 2, lane="interactive")
        assert (
            pytest.approx(5.5, rel=0.01)
            == served.scheduler.forecast(hosted, "interactive", Demand(), served.clock()).wait_s
        )

        calls += put(served, hosted, 3)
        assert (
            pytest.approx(1.5 + 4 * 10 / 9, rel=0.01)
            == served.scheduler.forecast(hosted, "interactive", Demand(), served.clock()).wait_s
        )
        assert (
            pytest.approx(7.5, rel=0.01)
            == served.scheduler.forecast(hosted, "bulk", Demand(), served.clock()).wait_s
        )
        with hosted.queue.pending.expecting("bulk", 3, served.clock):
            assert (
                pytest.approx(13.5, rel=0.01)
                == served.scheduler.forecast(hosted, "bulk", Demand(), served.clock()).wait_s
            )
        model.hold.set()
        await outcomes_of([busy, *calls])


async def test_a_device_that_stands_still_is_told_from_an_idle_one():
    """Stalled means work and no finished batch; idle for an hour is no stall."""
    now = 0.0
    model = Words()
    served, hosted = device(model, clock=lambda: now)
    async with served:
        now = 3600.0
        assert 0.0 == served.stalled_for()
        busy = await holding(model, served, hosted)
        now = 3700.0
        assert 100.0 == served.stalled_for()
        model.hold.set()
        await busy.result
        assert 0.0 == served.stalled_for()


def test_fakes_spread_their_scores():
    """The fake's numbers lie strictly between 0 and 1."""
    assert all(0 < chance(str(n)) < 1 for n in range(1000))
