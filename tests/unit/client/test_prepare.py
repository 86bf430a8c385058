"""The time of a call begins when the service of this process is ready for it."""

import asyncio
from collections.abc import Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import NamedTuple, get_type_hints

import httpx2 as httpx
import pytest

from scoregate import AsyncClient, Client
from scoregate.connection import Connection, Reply, Transport
from scoregate.errors import ServiceTimeoutError
from scoregate.local import IN_PROCESS, InProcessTransport, LoadingTransport
from scoregate.trainers import Reward

pytestmark = pytest.mark.anyio


class Slow(Transport):
    """A service that loads for 1,000 seconds before a request, on a clock of its own."""

    def __init__(self):
        self.now, self.left = 0.0, []

    def time(self):
        return self.now

    async def prepare(self, path, content_type, content, metrics):
        self.now += 1000

    async def send(self, request):
        self.left.append(request.left)
        return Reply("", 200, {}, b"{}")

    @asynccontextmanager
    async def opened(self, request):
        self.left.append(request.left)

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


class Silent(Slow):
    """A service that never answers; *ended* is set when the caller has gone."""

    def __init__(self):
        super().__init__()
        self.ended = False

    async def send(self, request):
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True

    def time(self):
        return asyncio.get_running_loop().time()


async def test_a_request_is_ended_after_its_time_whatever_its_transport():
    """The transport itself need not watch it."""
    transport = Silent()
    with pytest.raises(ServiceTimeoutError, match="no answer from http://in-process/score in time"):
        await Connection(["http://in-process"], 0, transport).call("POST", "/score", 0.01, b"{}")

    assert transport.ended


class Answer(NamedTuple):
    """A response of a service of this process."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@pytest.mark.parametrize(("transport", "loads"), [(LoadingTransport, True), (InProcessTransport, False)])
async def test_a_service_of_this_process_is_an_exchange_of_requests_and_what_loads_its_models(
    transport, loads
):
    """A client takes that way to it as one over HTTP; models that are not there are loaded first."""
    done = []

    async def prepare(path, content_type, content, metrics):
        done.append(("load", path, [*metrics]))

    async def exchange(method, path, headers, content):
        done.append((method, path, content))
        return Answer(200, {}, b'{"models": [], "metrics": {}}')

    service = SimpleNamespace(exchange=exchange, load_for=prepare)
    client = AsyncClient(IN_PROCESS, transport=transport(service))

    assert [] == (await client.models(["ocr"]))["models"]
    assert [("load", "/models", ["ocr"])] * loads + [("GET", "/models", b"")] == done


def test_each_client_declares_the_ways_that_it_takes():
    """Any transport of the client, and one of httpx2; None is the client's own over HTTP."""
    for owner in (AsyncClient.__init__, Client.__init__, Reward):
        assert Transport | httpx.AsyncBaseTransport | None == get_type_hints(owner)["transport"]
