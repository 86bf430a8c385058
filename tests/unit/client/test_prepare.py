"""The time of a call begins when the service of this process is ready for it."""

from contextlib import asynccontextmanager

import pytest

from scoregate.connection import Connection, Reply, Transport

pytestmark = pytest.mark.anyio


class Slow(Transport):
    """A service that loads for 1,000 seconds before a request, on a clock of its own."""

    def __init__(self):
        self.now, self.left = 0.0, []

    def time(self):
        return self.now

    async def prepare(self, path, content_type, content):
        self.now += 1000

    async def send(self, address, method, path, left, content, headers):
        self.left.append(left)
        return Reply("", 200, {}, b"{}")

    @asynccontextmanager
    async def opened(self, address, path, left, content, headers):
        self.left.append(left)

        async def lines():
            yield b"{}\n"

        yield "", lines()


async def test_loading_takes_no_time_of_a_call():
    """Of one that is answered at once, and of a stream."""
    transport = Slow()
    connection = Connection(["http://in-process"], 0, transport)
    await connection.call("POST", "/score", 60.0, b"{}")
    [_] = [each async for each in connection.lines("/score?stream=1", 60.0, "application/json", b"{}")]

    assert ([60.0, 60.0], 2000) == (transport.left, transport.now)
