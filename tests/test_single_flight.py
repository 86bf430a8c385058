"""Work that many ask for at once, and what many want a share of."""

import asyncio

import pytest

from service.serving.budget import Budget
from service.serving.single_flight import SingleFlight

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
