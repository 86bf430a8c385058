"""What requests hold while they are answered: one budget of bytes, and each byte once."""

import asyncio
import threading

import pytest

from service.core.concurrency.budget import ByteBudget
from service.core.concurrency.cpu_threads import FairThreads
from service.core.settings.sections import Server
from service.web.server.incoming import Bodies

pytestmark = pytest.mark.anyio

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
            with bodies.coming({}) as body:
                return await body.parsed(parse, bytes(size))

        tasks = [asyncio.create_task(one(size)) for size in (2 * MB, 3 * MB)]
        while not begun:
            await asyncio.sleep(0.001)
        for _ in range(20):
            await asyncio.sleep(0)
        assert [2 * MB] == begun
        go.set()

        assert [2 * MB, 3 * MB] == await asyncio.gather(*tasks)
