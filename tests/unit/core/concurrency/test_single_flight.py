"""Work that many ask for at once."""

import asyncio
import gc

import pytest

from service.core.concurrency.single_flight import SingleFlight

pytestmark = pytest.mark.anyio


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
    """The next one starts anew."""
    flights = SingleFlight()

    async def fail():
        raise ValueError

    outcomes = await asyncio.gather(*(flights.do("key", fail) for _ in range(3)), return_exceptions=True)
    assert [ValueError] * 3 == [type(outcome) for outcome in outcomes]
    assert 0 == len(flights)


async def test_closing_cancels_what_is_under_way_and_waits_for_its_end():
    """Also for work that takes its time to end, and whatever it ends with."""
    flights, ended = SingleFlight(), []

    async def ends(how):
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(how)
            raise how

    for how in (ValueError(), asyncio.CancelledError()):
        asyncio.create_task(flights.do(how, lambda how=how: ends(how))).add_done_callback(
            lambda asked: asked.cancelled() or asked.exception()
        )
    while len(flights) < 2:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    await flights.aclose()

    assert 2 == len(ended)
    assert 0 == len(flights)


@pytest.mark.parametrize("end", [ValueError, asyncio.CancelledError])
async def test_work_that_fails_when_all_have_left_is_no_fault_of_the_loop(end):
    """Nobody is there to read its exception, and nothing is logged for that."""
    flights, gate, complaints = SingleFlight(), asyncio.Event(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def fail():
        await gate.wait()
        raise end

    asked = asyncio.create_task(flights.do("key", fail))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    del asked  # whose traceback keeps the work
    gate.set()
    while len(flights):
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    gc.collect()

    assert [] == complaints
