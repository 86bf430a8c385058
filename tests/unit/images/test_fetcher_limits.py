"""Who may fetch a picture now."""

from contextlib import AsyncExitStack

import pytest

from service.core.concurrency.budget import ByteBudget, one_caller
from service.core.settings.sections import Images
from service.images.fetcher import MAX_BULK, MAX_FETCHES, MAX_PER_CALLER, MAX_PER_HOST, Fetcher

pytestmark = pytest.mark.anyio


def slots():
    """The slots of a fetcher."""
    return Fetcher(Images(), ByteBudget(2**20))._slots


def may_begin(places, host="other", caller="other", urgent=True) -> bool:
    """Return True if a fetch would have a slot at once."""
    with one_caller(caller):
        taken = places.take_now(1, urgent, host)
    if taken:
        taken.give_back(1)
    return bool(taken)


async def take(places, count, host=str, caller=str, urgent=True):
    """Hold slots, each with a host and a caller by its number."""
    for number in range(count):
        with one_caller(caller(number)):
            await places.take(1, urgent, host(number))


async def test_a_host_takes_not_all_slots():
    """Its next fetch waits, and that of another host begins."""
    places = slots()
    await take(places, MAX_PER_HOST, host=lambda number: "slow")

    assert not may_begin(places, host="slow")
    assert may_begin(places)


async def test_a_caller_takes_not_all_slots():
    """Its next fetch waits, and that of another caller begins."""
    places = slots()
    await take(places, MAX_PER_CALLER, caller=lambda number: "eager")

    assert not may_begin(places, caller="eager")
    assert may_begin(places)


async def test_bulk_requests_take_not_all_slots():
    """The next bulk fetch waits, and an interactive one begins."""
    places = slots()
    await take(places, MAX_BULK, urgent=False)

    assert not may_begin(places, urgent=False)
    assert may_begin(places)


async def test_interactive_requests_may_take_all_slots():
    """Then another interactive fetch waits for one of them."""
    places = slots()
    await take(places, MAX_FETCHES - 1)
    assert may_begin(places)

    await take(places, 1, host=lambda number: "last", caller=lambda number: "last")
    assert not may_begin(places)


async def test_bulk_requests_keep_their_slots_beside_interactive_ones():
    """As many interactive fetches as there are slots that bulk ones never take leave those to bulk ones."""
    places = slots()
    await take(places, MAX_FETCHES - 1)

    assert may_begin(places, urgent=False)


async def test_slots_are_free_after_their_holders():
    """Whatever they were held for."""
    places = slots()
    async with AsyncExitStack() as held:
        await held.enter_async_context(places.hold(1, True, "a"))
        await held.enter_async_context(places.hold(1, False, "b"))

    assert 0 == places.held
