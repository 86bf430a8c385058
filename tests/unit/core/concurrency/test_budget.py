"""Budgets, and the turns of their callers."""

import asyncio

import pytest

from service.core.concurrency.budget import SMALL_BYTES, Budget, ByteBudget, Share, Turns, one_caller
from service.core.errors import MemoryFull
from service.core.settings.sections import Server, a_quarter_of_the_memory

pytestmark = pytest.mark.anyio


def drained(turns: Turns[str]) -> str:
    """All entries in the order of their turns."""
    taken = []
    while turns.callers:
        assert turns.first() == turns.first()
        taken.append(turns.take()[1])
    return "".join(taken)


def test_callers_take_turns_whoever_has_most():
    """And each caller's own entries keep their order."""
    turns: Turns[str] = Turns()
    for entries in ("abc", "A", "12"):
        with one_caller():
            for entry in entries:
                turns.add(entry)

    assert "aA1b2c" == drained(turns)


def test_who_comes_back_goes_behind_the_others():
    """One entry at a time gets no more than many at once."""
    turns: Turns[str] = Turns()
    with one_caller():
        turns.add("a")
        turns.add("b")
    with one_caller():
        turns.add("1")
        _, first = turns.take()
        turns.add("2")

    assert "a1b2" == first + drained(turns)


def test_what_belongs_to_no_request_waits_as_one_caller():
    """First come, first served."""
    turns: Turns[str] = Turns()
    for entry in "abc":
        turns.add(entry)

    assert "abc" == drained(turns)
    with pytest.raises(StopIteration):
        turns.first()


def test_requests_with_one_key_are_one_caller():
    """Its requests share the caller's turns, in turns themselves."""
    turns: Turns[str] = Turns()
    for who, entries in (("key", "ab"), ("key", "12"), (None, "xyz")):
        with one_caller(who):
            for entry in entries:
                turns.add(entry)

    assert "ax1ybz2" == drained(turns)


def test_callers_who_are_last_go_where_no_others_wait():
    """Those who have something go behind those who have nothing, and in turns among themselves."""
    turns: Turns[str] = Turns()
    for who in "abc":
        with one_caller(who):
            turns.add(who)

    assert [("b", "b"), ("a", "a"), ("c", "c")] == [turns.take(last) for last in ("ac", "ac", "c")]


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


LARGE = 16 * SMALL_BYTES


def test_what_does_not_fit_is_refused_and_changes_nothing():
    """429, with a time to wait."""
    budget = ByteBudget(2 * LARGE)
    with Share(budget) as first, Share(budget) as second:
        first.grow(LARGE)
        with pytest.raises(MemoryFull) as refused:
            second.grow(LARGE)

        assert (LARGE, 0, LARGE) == (first.size, second.size, budget.held)
        assert 429 == refused.value.status
        assert refused.value.retry_after_s


def test_a_share_goes_with_its_holder():
    """Whatever was given back before."""
    budget = ByteBudget(2 * LARGE)
    with Share(budget) as share:
        share.grow(LARGE)
        share.shrink(SMALL_BYTES)

        assert LARGE - SMALL_BYTES == budget.held
    assert 0 == budget.held


def test_large_ones_leave_room_for_small_ones():
    """Whoever floods the service with large bodies does not keep a caller with one small picture out."""
    budget = ByteBudget(2 * LARGE)
    with Share(budget) as large, Share(budget) as small:
        with pytest.raises(MemoryFull):
            large.grow(2 * LARGE)
        large.grow(2 * LARGE * 7 // 8)
        with pytest.raises(MemoryFull):
            large.grow(1)
        small.grow(SMALL_BYTES)
        with pytest.raises(MemoryFull):
            small.grow(1)


def test_no_bytes_more_always_fit():
    """A body that is held whole ends with an empty message, and others may have filled the rest meanwhile."""
    budget = ByteBudget(2 * LARGE)
    with Share(budget) as large, Share(budget) as other:
        large.grow(LARGE)
        budget.held = budget.total
        large.grow(0)
        other.grow(0)

        assert LARGE == large.size
        budget.held = LARGE


def test_two_of_the_largest_bodies_fit_whatever_is_set():
    """Or a body within the limit could never be sent."""
    assert 128 * 2**20 == Server(requests_mb=1, body_limit_mb=64).request_bytes


@pytest.mark.parametrize(("limit", "expected"), [("1073741824\n", 256), ("max\n", None)])
def test_the_default_follows_the_memory_of_the_container(tmp_path, limit, expected):
    """Of a container with 1 GiB it is 256 MiB; without a limit that of the machine counts."""
    file = tmp_path / "memory.max"
    file.write_text(limit)
    machine = a_quarter_of_the_memory([])

    assert min(expected or machine, machine) == a_quarter_of_the_memory([file, tmp_path / "missing"])
    assert a_quarter_of_the_memory() == Server().requests_mb
