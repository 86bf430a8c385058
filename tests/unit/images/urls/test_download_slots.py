"""Who may fetch a picture now."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

import pytest

from service.core.concurrency.turns import one_caller
from service.images.urls.download_slots import (
    MAX_BULK,
    MAX_FETCHES,
    MAX_PER_CALLER,
    MAX_PER_HOST,
    DownloadSlots,
    Fetch,
    following,
)

pytestmark = pytest.mark.anyio


def fetch(host="a", caller="one", urgent=True):
    return Fetch(host, caller, urgent, begin=None)


def running(*fetches):
    return Counter(key for one in fetches for key, _ in one.limits())


@pytest.mark.parametrize(
    ("many", "blocked", "free"),
    [
        ([fetch(caller=n) for n in range(MAX_PER_HOST)], fetch(caller="other"), fetch("b", "other")),
        ([fetch(str(n)) for n in range(MAX_PER_CALLER)], fetch("other"), fetch("other", "two")),
        (
            [fetch(str(n), n, urgent=False) for n in range(MAX_BULK)],
            fetch("other", "two", urgent=False),
            fetch("other", "two"),
        ),
    ],
    ids=["a host", "a caller", "bulk requests"],
)
def test_nobody_takes_all_places(many, blocked, free):
    """A host, a caller and the bulk lane each have a limit, and whoever is beyond it delays no other."""
    assert following([blocked], running(*many)) is None
    assert following([blocked, free], running(*many)) is free


def test_all_places_may_be_taken():
    """Then even an interactive fetch of another host waits."""
    many = [fetch(str(n), n) for n in range(MAX_FETCHES)]

    assert following([fetch("other", "other")], running(*many)) is None
    assert following([one := fetch("other", "other")], running(*many[1:])) is one


def test_the_urgent_come_first_then_whoever_has_the_fewest_then_the_oldest():
    """In this order."""
    bulk, busy, idle, late = (
        fetch(caller="bulk", urgent=False),
        fetch(caller="busy"),
        fetch(caller="idle"),
        fetch(caller="late"),
    )

    assert following([bulk, busy, idle, late], running(fetch("b", "busy"))) is idle
    assert following([bulk, busy], running(fetch("b", "busy"))) is busy


async def test_a_place_goes_to_the_next_when_its_holder_leaves():
    """Also to one behind a fetch that was cancelled while it waited."""
    places, begun = DownloadSlots(), []

    async def work(name):
        async with places.hold("host", urgent=True):
            begun.append(name)

    async with AsyncExitStack() as held:
        for _ in range(MAX_PER_HOST):
            with one_caller():
                await held.enter_async_context(places.hold("host", urgent=True))
        leaves, stays = (asyncio.create_task(work(name)) for name in ("leaves", "stays"))
        await asyncio.sleep(0)
        leaves.cancel()
        await asyncio.gather(leaves, return_exceptions=True)
        assert [] == begun
    await stays

    assert ["stays"] == begun
    assert not places._running
    assert not places._waiting
