"""Something that is looked at again and again."""

import asyncio

import pytest

from service.concurrency.watcher import Watcher

pytestmark = pytest.mark.anyio


async def test_it_looks_at_once_then_in_its_interval_and_no_more_once_closed():
    """The first look is over when the start is."""
    looks, waits, turn = [], [], asyncio.Queue()

    async def look():
        looks.append(1)

    async def sleep(seconds):
        waits.append(seconds)
        await turn.get()

    before = asyncio.all_tasks()
    watcher = Watcher(look, 5.0, sleep)
    await watcher.start()
    assert 1 == len(looks)
    turn.put_nowait(None)
    while len(waits) < 2:
        await asyncio.sleep(0)
    await watcher.aclose()

    assert (2, [5.0, 5.0]) == (len(looks), waits)
    assert before == asyncio.all_tasks()


async def test_it_can_be_closed_before_it_was_started():
    """A service that fails at its start closes all the same."""
    await Watcher(lambda: asyncio.sleep(0), 1.0).aclose()
