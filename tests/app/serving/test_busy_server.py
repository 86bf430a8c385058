"""A served model whose calls take all connections: its checks have their own."""

import asyncio
import threading
from contextlib import asynccontextmanager

import pytest

from tests.app.serving.test_last_calls import backend
from tests.app.serving.test_remote_vlm import PROMPT
from tests.support.fake_openai import plausible, weighed
from tests.support.pictures import item

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def busy(with_vlm, server):
    """A client of a service whose server works on a call that has the only connection."""
    begun, ends = threading.Event(), threading.Event()

    def slow(body):
        begun.set()
        ends.wait()
        return 200, weighed(id5=-0.5, id6=-2.0)

    server.chat = slow
    server.models = (200, {"data": [{"id": "m", "owned_by": "vllm"}]})
    async with with_vlm(max_in_flight=1) as client:
        body = {"items": [item(PROMPT)], "metrics": ["vqascore"]}
        call = asyncio.create_task(client.post("/score", json=body))
        try:
            await asyncio.to_thread(begun.wait)
            yield client, call
        finally:
            ends.set()
            await call


async def test_a_server_whose_calls_take_all_connections_is_ready(with_vlm, server):
    """The service reaches it while the call runs, and holds no later call back for a check."""
    async with busy(with_vlm, server) as (client, call):
        await backend(client, "vqa").look()
        ready, health = await client.get("/readyz"), (await client.get("/health")).json()
        assert ("", False) == (backend(client, "vqa").missing, backend(client, "vqa")._trust.doubted)
        assert not call.done()

    assert (200, {}) == (ready.status_code, health["degraded"])
    assert 200 == call.result().status_code


async def test_known_calls_are_answered_while_calls_take_all_connections(with_vlm, server):
    """A server that came up again is checked although it works on a call already."""
    async with busy(with_vlm, server) as (client, call):
        before = len(server.checks)
        backend(client, "vqa")._trust.doubted = True
        await backend(client, "vqa")._trust.check()
        assert len(server.checks) > before
        assert not call.done()


async def test_an_operator_reaches_a_server_whose_calls_take_all_connections(with_vlm, server):
    """The command to sleep does not wait for the call."""
    server.sleeps = False
    server.known = lambda body: (200, plausible(body))
    async with busy(with_vlm, server) as (client, call):
        await backend(client, "vqa").offload()
        assert server.sleeps
        assert not call.done()
