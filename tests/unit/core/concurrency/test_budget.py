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


async def test_cancelled_waiters_are_passed_by_and_harm_no_holder():
    """
    Those that are cancelled together hold nothing, and each raises its own cancellation.

    The first that leaves hands its portion to nobody who has left already.
    """
    budget = Budget(16, per_caller=16)
    served = []

    async def work(name):
        async with budget.hold(1):
            served.append(name)
            await asyncio.Event().wait()

    with one_caller():
        tasks = [asyncio.create_task(work(number)) for number in range(40)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)

    assert [asyncio.CancelledError] * 40 == [type(end) for end in ends]
    assert [*range(16)] == served
    assert 0 == budget.held
    assert not budget.waits


async def test_a_holder_ends_in_the_turn_in_which_a_waiter_is_cancelled():
    """Its result stands, and the portion goes to the next waiter."""
    budget, go_on, results = Budget(1), asyncio.Event(), []

    async def work(name):
        async with budget.hold(1):
            await go_on.wait()
        results.append(name)

    holder, leaves, stays = (asyncio.create_task(work(name)) for name in ("holder", "leaves", "stays"))
    await asyncio.sleep(0)
    go_on.set()
    leaves.cancel()
    await asyncio.gather(holder, leaves, stays, return_exceptions=True)

    assert ["holder", "stays"] == results
    assert 0 == budget.held


async def test_a_waiter_that_is_cancelled_after_it_was_served_gives_its_portion_back():
    """In the turn between the hand-over and its next step."""
    budget = Budget(1)
    held = await budget.take(1)
    waiting = asyncio.create_task(budget.take(1))
    await asyncio.sleep(0)
    held.give_back(1)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    assert 0 == budget.held


async def test_one_who_leaves_lets_those_behind_it_go_on():
    """A large amount at the front no longer stands in the way of a small one."""
    budget = Budget(10)
    await budget.take(5)
    with one_caller():
        large = asyncio.create_task(budget.take(8))
    with one_caller():
        small = asyncio.create_task(budget.take(1))
    await asyncio.sleep(0)
    assert not small.done()
    large.cancel()
    await asyncio.gather(large, return_exceptions=True)
    await small

    assert 6 == budget.held


async def test_a_caller_or_a_key_at_its_maximum_is_passed_by():
    """Urgent ones too; they go on when one of their own portions is given back."""
    budget, order = Budget(10, per_caller=2, per_key=1), []

    async def work(name, key, urgent):
        portion = await budget.take(1, urgent, key)
        order.append(name)
        return portion

    with one_caller("one"):
        first, second = await budget.take(1, key="a"), await budget.take(1, key="b")
        third = asyncio.create_task(work("third of one caller", "c", True))
    with one_caller("two"):
        same = asyncio.create_task(work("same key", "a", True))
        other = asyncio.create_task(work("other key", "d", False))
    await asyncio.sleep(0)
    assert ["other key"] == order
    second.give_back(1)
    await third
    first.give_back(1)
    await asyncio.gather(same, other)

    assert ["other key", "third of one caller", "same key"] == order


async def test_the_patient_never_hold_the_part_of_the_urgent():
    """Also while the urgent hold nothing; beside urgent portions they have theirs."""
    budget = Budget(10, for_urgent=4)
    await budget.take(6, urgent=False)
    assert not budget.take_now(1, urgent=False)
    assert budget.take_now(4)

    other = Budget(10, for_urgent=4)
    await other.take(4)
    assert other.take_now(6, urgent=False)
