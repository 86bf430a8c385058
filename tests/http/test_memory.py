"""What requests hold while they are answered: one budget of bytes, and each byte once."""

import asyncio
import base64
import re
import threading
import tracemalloc
from contextlib import asynccontextmanager

import pytest

from service.byte_budget import ByteBudget
from service.concurrency.cpu_threads import FairThreads
from service.http.incoming import Bodies
from service.settings.sections import Server
from tests.conftest import item, png
from tests.http.refusals import refused

pytestmark = pytest.mark.anyio

MB = 2**20
LIMITS = {"body_limit_mb": 2, "requests_mb": 4}  # room for one large body, and for small ones beside it
LARGE = 1_450_000  # bytes of a file; as base64 almost 2 MB


def padded(size: int) -> bytes:
    """A small picture in a file of so many bytes."""
    return png() + bytes(size)


def request(size: int) -> dict:
    return {"items": [item("a", base64.b64encode(padded(size)).decode())], "metrics": ["vqascore"]}


def form(size: int) -> dict:
    """The same as a form, whose file is no text."""
    part = '{"items": [{"prompt": "a", "image": {"part": "p"}}], "metrics": ["vqascore"]}'
    return {"request": (None, part), "p": ("p", padded(size))}


@asynccontextmanager
async def waiting(client, fakes, made):
    """A request that waits for its model while this is open."""
    fakes["vqa"].hold.clear()
    task = asyncio.create_task(client.send(made))
    try:
        while not fakes["vqa"].held:
            await asyncio.sleep(0.001)
        yield task
    finally:
        fakes["vqa"].hold.set()
        await task


def built(client, **sent):
    """A request whose body is written already."""
    made = client.build_request("POST", "/score", **sent)
    made.read()
    return made


@pytest.mark.parametrize("sent", [{"json": request(LARGE)}, {"files": form(2_000_000)}])
async def test_what_has_arrived_counts_until_it_is_answered(serve, fakes, sent):
    """The next large body is refused with a time to wait, a small one is not.  In the end nothing is held."""
    async with serve(server=LIMITS) as client:
        service = client._transport.app.state.service
        async with waiting(client, fakes, built(client, **sent)) as first:
            held = service.memory.held
            answer = await client.post("/score", json=request(LARGE))
            metrics = (await client.get("/metrics")).text
            small = asyncio.create_task(client.post("/score", json=request(100)))
            while service.memory.held == held:
                await asyncio.sleep(0.001)

    problem = refused(answer, 429, "memory_full")
    assert problem["retry_after_s"] <= int(answer.headers["Retry-After"])
    assert (200, 200) == ((await first).status_code, (await small).status_code)
    assert held > LARGE
    assert held == float(re.search(r"^scoregate_requests_held_bytes (\S+)$", metrics, re.MULTILINE)[1])
    assert 'scoregate_rejections_total{reason="memory_full"} 1.0' in metrics
    assert 0 == service.memory.held


@pytest.mark.parametrize("sent", [{"json": request(6 * MB)}, {"files": form(6 * MB)}])
async def test_a_request_that_waits_holds_its_picture_once(serve, fakes, sent):
    """Neither the raw body nor the base64 stays beside the file."""
    async with serve() as client:
        made = built(client, **sent)
        tracemalloc.start()
        try:
            async with waiting(client, fakes, made):
                held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert 6 * MB < held < 1.4 * 6 * MB


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
