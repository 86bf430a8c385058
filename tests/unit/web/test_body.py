"""How slow a body may be, how much of unfinished ones is held, and that large ones are parsed one by one."""

import asyncio
import gc
import threading
import weakref

import pytest

from service.core.concurrency.budget import ByteBudget
from service.core.concurrency.cpu_threads import FairThreads
from service.core.errors import Draining, Overloaded, RequestTimeout
from service.core.settings.sections import Server
from service.web.server.body import MIN_BYTES_PER_S, Bodies, Body, Pace

pytestmark = pytest.mark.anyio

MB = 2**20


def test_a_window_without_enough_bytes_is_the_last():
    """A byte now and then does not move the deadline."""
    pace = Pace(window_s=10, now=100)
    for second in range(9):
        pace.came(MIN_BYTES_PER_S, now=101 + second)

    assert 110 == pace.deadline


def test_enough_bytes_begin_the_next_window():
    """At the moment at which they have come, however fast."""
    pace = Pace(window_s=10, now=100)
    pace.came(9 * MIN_BYTES_PER_S, now=101)
    pace.came(MIN_BYTES_PER_S, now=102)

    assert 112 == pace.deadline


def test_time_between_stop_and_go_does_not_count():
    """That of all parts between is one window."""
    pace = Pace(window_s=10, now=100)
    pace.stop(now=107)
    pace.go(now=200)
    assert 203 == pace.deadline
    pace.stop(now=202)
    pace.go(now=300)

    assert 301 == pace.deadline


def bodies_of(limits):
    """With a budget and a thread of their own."""
    return Bodies(limits, ByteBudget(limits.request_bytes), FairThreads(1, "parser"))


class Caller:
    """What a caller sends, message by message, and then nothing more."""

    def __init__(self, *bodies, more=True):
        self.bodies, self.more = list(bodies), more

    async def receive(self):
        if not self.bodies:
            await asyncio.Event().wait()
        body = self.bodies.pop(0)
        return {"type": "http.request", "body": body, "more_body": self.more or bool(self.bodies)}


async def read(bodies, caller):
    """All messages of a body."""
    with Body(bodies, {}) as body:
        while (await body.receive(caller.receive)).get("more_body"):
            pass


async def test_the_body_that_began_first_gives_way():
    """The ones that came later stay, and what it held is free."""
    bodies = bodies_of(Server(body_limit_mb=1, unfinished_bodies_mb=2))
    first, second = [asyncio.create_task(read(bodies, Caller(bytes(MB)))) for _ in range(2)]
    await asyncio.sleep(0)
    third = asyncio.create_task(read(bodies, Caller(bytes(MB // 2), bytes(MB // 2), more=False)))
    await third

    with pytest.raises(Overloaded):
        await first
    assert not second.done()
    second.cancel()


async def test_nothing_of_a_body_that_was_refused_is_kept():
    """Its error holds the frames that hold its bytes, so nothing may hold the error."""
    bodies = bodies_of(Server(body_limit_mb=1, unfinished_bodies_mb=1))

    class Bytes(bytearray):
        """Which can be referred to weakly."""

    async def refused(piece):
        try:
            await read(bodies, Caller(piece))
        except Overloaded:
            return weakref.ref(piece)

    gc.disable()
    try:
        with Body(bodies, {}) as body:
            first = asyncio.create_task(refused(Bytes(MB)))
            await asyncio.sleep(0)
            await body.receive(Caller(bytes(MB)).receive)
            alive = await first
            del first

            assert alive() is None
    finally:
        gc.enable()


async def test_all_that_are_coming_can_be_refused_and_those_that_have_come_are_not():
    """Whether something of them has come or not."""
    bodies = bodies_of(Server())
    coming = [asyncio.create_task(read(bodies, caller)) for caller in (Caller(), Caller(b"{"))]
    with Body(bodies, {}) as ended:
        await ended.receive(Caller(b"{}", more=False).receive)
        await asyncio.sleep(0)
        bodies.refuse_all(Draining())
        leaving = Caller(b"", more=False)  # what comes after the end: the caller's leaving
        assert await ended.receive(leaving.receive)

    assert [Draining] * 2 == [type(e) for e in await asyncio.gather(*coming, return_exceptions=True)]


async def test_a_body_without_progress_is_refused():
    """Whoever waits for it learns so."""
    with pytest.raises(RequestTimeout, match=r"within 0\.01 s"):
        await read(bodies_of(Server(body_timeout_s=0.01)), Caller(b"{"))


MB = 2**20


async def test_large_bodies_are_parsed_one_at_a_time():
    """What is made of a body is held beside it: the second one waits until the first is done."""
    begun, go = [], threading.Event()

    def parse(body):
        begun.append(len(body))
        assert go.wait(10)
        return len(body)

    with FairThreads(1, "parser") as parser:
        bodies = Bodies(Server(), ByteBudget(64 * MB), parser)

        async def one(size):
            with Body(bodies, {}) as body:
                return await body.parsed(parse, bytes(size))

        tasks = [asyncio.create_task(one(size)) for size in (2 * MB, 3 * MB)]
        while not begun:
            await asyncio.sleep(0.001)
        for _ in range(20):
            await asyncio.sleep(0)
        assert [2 * MB] == begun
        go.set()

        assert [2 * MB, 3 * MB] == await asyncio.gather(*tasks)
