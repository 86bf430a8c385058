"""How slow a body may be, and how much of all unfinished ones is held."""

import asyncio

import pytest

from tests.support.app import service_of
from tests.support.refusals import JSON, refused

pytestmark = pytest.mark.anyio


async def test_the_app_answers_408(serve):
    """As any other error, counted and with the request's id."""

    async def stops():
        yield b"{"
        await asyncio.Event().wait()

    async with serve(server={"body_timeout_s": 0.01}) as client:
        refused(await client.post("/score", content=stops(), headers=JSON), 408, "request_timeout")
        counted = (await client.get("/metrics")).text

    assert 'scoregate_requests_total{code="408",route="/score"} 1.0' in counted


async def test_a_message_with_two_lengths_is_refused(serve):
    """400, whatever follows."""
    async with serve() as client:
        both = {**JSON, "Content-Length": "2", "Transfer-Encoding": "chunked"}
        answer = await client.post("/score", content=b"{}", headers=both)

    refused(answer, 400, "malformed")
    assert "close" == answer.headers["Connection"]


async def test_what_comes_while_the_service_stops_is_refused(serve):
    """503 `draining`; the probes still answer."""
    async with serve() as client:
        service_of(client).draining = True
        refused(await client.get("/health"), 503, "draining")

        assert 200 == (await client.get("/livez")).status_code
        assert 503 == (await client.get("/readyz")).status_code
