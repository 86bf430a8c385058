"""Work that many ask for at once."""

import asyncio

import pytest

from service.concurrency.single_flight import SingleFlight

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
