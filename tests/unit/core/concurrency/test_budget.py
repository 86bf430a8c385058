"""What many want a share of."""

import asyncio

import pytest

from service.core.concurrency.budget import Budget
from service.core.concurrency.turns import one_caller

pytestmark = pytest.mark.anyio


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


async def test_requests_get_their_shares_in_turns():
    """One that wants many does not stand before one that wants a single share."""
    budget, order = Budget(10), []

    async def work(name):
        async with budget.hold(10):
            order.append(name)

    tasks = []
    async with budget.hold(10):
        for name, count in (("many", 9), ("one", 1)):
            with one_caller():
                tasks += [asyncio.create_task(work(name)) for _ in range(count)]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)

    assert ["many", "one"] == order[:2]


async def test_who_holds_something_does_not_keep_others_waiting_for_more():
    """A caller with pictures that fit one at a time waits for itself, and a small one goes by."""
    budget, order = Budget(10), []

    async def work(name, amount, done):
        async with budget.hold(amount):
            order.append(name)
            await done.wait()

    first, rest = asyncio.Event(), asyncio.Event()
    rest.set()
    with one_caller():
        tasks = [asyncio.create_task(work("large", 8, done)) for done in (first, rest, rest)]
    with one_caller():
        tasks.append(asyncio.create_task(work("small", 1, rest)))
    await tasks[-1]
    assert ["large", "small"] == order
    first.set()
    await asyncio.gather(*tasks)

    assert 0 == budget.held


async def test_who_wants_much_and_holds_nothing_is_not_passed_for_ever():
    """The ones that came later wait, though there would be enough for them."""
    budget, order = Budget(10), []

    async def work(name, amount):
        async with budget.hold(amount):
            order.append(name)

    with one_caller():
        held = await budget.take(5)
    tasks = []
    for name, amount in (("large", 8), ("small", 1)):
        with one_caller():
            tasks.append(asyncio.create_task(work(name, amount)))
    await asyncio.sleep(0)
    assert [] == order
    held.give_back(5)
    await asyncio.gather(*tasks)

    assert ["large", "small"] == order
