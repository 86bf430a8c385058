"""Something that is looked at again and again."""

import asyncio

import pytest

from service.core.concurrency.watcher import Watcher

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


async def test_a_look_that_fails_is_a_line_in_the_log_and_not_the_last(caplog):
    """Whatever it raises."""
    looks, turn = [], asyncio.Queue()

    async def look():
        looks.append(1)
        if len(looks) == 2:
            raise TypeError("an answer that nobody has foreseen")

    watcher = Watcher(look, 5.0, lambda seconds: turn.get())
    await watcher.start()
    for _ in range(2):
        turn.put_nowait(None)
    while len(looks) < 3:
        await asyncio.sleep(0)
    await watcher.aclose()

    [record] = caplog.records
    assert "a look failed" == record.message
    assert "nobody has foreseen" in str(record.exc_info[1])


async def test_it_can_be_closed_before_it_was_started():
    """A service that fails at its start closes all the same."""
    await Watcher(lambda: asyncio.sleep(0), 1.0).aclose()
