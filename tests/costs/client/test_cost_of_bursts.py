"""What a call costs the client's event loop while many others are in progress."""

import asyncio
import json
import re
import sys
from itertools import count

from scoregate import AsyncClient
from tests.support.pictures import png

CONNECTIONS = 16  # of one client, so that nearly all calls of a burst wait for one
SCORED = json.dumps({"results": [{"index": 0, "scores": {"vqascore": 0.5}}]}).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(SCORED), SCORED)
REQUEST = re.compile(rb"content-length: (\d+).*?\r\n\r\n", re.IGNORECASE | re.DOTALL)


class Scores(asyncio.Protocol):
    """A connection whose requests all get the same score."""

    def __init__(self, ended: list[asyncio.Future[None]]) -> None:
        self.held = b""
        self.ended = asyncio.get_running_loop().create_future()
        ended.append(self.ended)

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.held += data
        head = REQUEST.search(self.held)
        if head and len(self.held) == head.end() + int(head[1]):
            self.held = b""
            self.transport.write(ANSWER)

    def connection_lost(self, error):
        self.ended.set_result(None)


async def calls_of_a_burst(size):
    """Return how many functions the event loop's thread calls for each of *size* calls at once."""
    ended, called = [], count()
    server = await asyncio.get_running_loop().create_server(lambda: Scores(ended), "127.0.0.1", 0)
    address = "http://{}:{}".format(*server.sockets[0].getsockname())
    async with server, AsyncClient(address, max_connections=CONNECTIONS, retries=0) as client:
        await client.score(png(), "x")  # the first call imports modules
        sys.setprofile(lambda frame, event, argument: next(called) if event == "call" else None)
        try:
            found = await asyncio.gather(*(client.score(png(), "x") for _ in range(size)))
        finally:
            sys.setprofile(None)
        await client.close()
        await asyncio.gather(*ended)
    assert [0.5] * size == [score.value for score in found]
    return next(called) / size


def test_a_call_of_a_large_burst_costs_what_one_of_a_small_burst_costs():
    """The pool of connections is not searched again for each call that waits: 1,024 at once, beside 32."""
    small, large = (asyncio.run(calls_of_a_burst(size)) for size in (32, 1024))

    assert large < 1.5 * small, (small, large)
