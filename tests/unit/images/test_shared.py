"""An opened image that several metrics hold."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from service.images.loader import Shared

pytestmark = pytest.mark.anyio


class Door:
    """Counts who goes in and out; the first to go in may be kept waiting, or fail."""

    def __init__(self):
        self.log, self.opened, self.fault = [], asyncio.Event(), None
        self.opened.set()

    @asynccontextmanager
    async def __call__(self):
        await self.opened.wait()
        if self.fault:
            raise self.fault
        self.log.append("in")
        try:
            yield "value"
        finally:
            self.log.append("out")


async def test_it_is_entered_with_the_first_and_left_with_the_last():
    """However many hold it meanwhile; who comes later enters it anew."""
    door = Door()
    shared = Shared()
    async with shared.hold(door) as one:
        async with shared.hold(door) as two:
            pass
        assert ["in"] == door.log
    async with shared.hold(door):
        pass

    assert ("value", "value") == (one, two)
    assert ["in", "out", "in", "out"] == door.log


async def test_who_comes_while_it_is_being_entered_waits_for_that():
    """It is entered once."""
    door = Door()
    shared = Shared()
    door.opened.clear()
    held = asyncio.Event()

    async def hold():
        async with shared.hold(door):
            await held.wait()

    tasks = [asyncio.create_task(hold()) for _ in range(3)]
    await asyncio.sleep(0)
    door.opened.set()
    await asyncio.sleep(0)
    held.set()
    await asyncio.gather(*tasks)

    assert ["in", "out"] == door.log


async def test_a_failure_to_enter_is_each_ones_own():
    """The next one tries again."""
    door = Door()
    shared = Shared()
    door.fault = LookupError()
    for _ in range(2):
        with pytest.raises(LookupError):
            async with shared.hold(door):
                pass
    door.fault = None
    async with shared.hold(door):
        assert ["in"] == door.log


async def test_the_first_may_be_cancelled_while_it_enters():
    """The others go in, and nobody is counted twice."""
    door = Door()
    shared = Shared()
    door.opened.clear()

    async def hold():
        async with shared.hold(door):
            pass

    first, second = asyncio.create_task(hold()), asyncio.create_task(hold())
    await asyncio.sleep(0)
    first.cancel()
    door.opened.set()
    await asyncio.gather(first, second, return_exceptions=True)

    assert ["in", "out"] == door.log
