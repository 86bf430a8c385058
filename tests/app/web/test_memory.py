"""What requests hold while they are answered: one budget of bytes."""

import asyncio
import re
import threading
import tracemalloc

import pytest

from tests.support.app import service_of
from tests.support.handles import until
from tests.support.large_bodies import MB, built, form, request, waiting
from tests.support.pictures import b64, item, png
from tests.support.refusals import refused

pytestmark = pytest.mark.anyio
LIMITS = {"body_limit_mb": 2, "requests_mb": 4}  # room for one large body, and for small ones beside it
LARGE = 1_450_000  # bytes of a file; as base64 almost 2 MB


@pytest.mark.parametrize("sent", [{"json": request(LARGE)}, {"files": form(2_000_000)}])
async def test_what_has_arrived_counts_until_it_is_answered(serve, fakes, sent):
    """The next large body is refused with a time to wait, a small one is not.  In the end nothing is held."""
    async with serve(server=LIMITS) as client:
        service = service_of(client)
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


async def test_kept_calls_are_decoded_in_reserved_memory(serve, fakes):
    """Pictures of a bulk request whose caller left stay reserved until their calls are prepared."""
    prepare, gate, reserved = fakes["vqa"].prepare, threading.Event(), []

    def decoding(call):
        call.image.rgb.load()
        reserved.append(service.images.pixels.held)
        return prepare(call)

    async with serve(images={"decode_workers": 1}) as client:
        service = service_of(client)
        fakes["vqa"].prepare = decoding
        busy = [service.cpu["bulk"].run(gate.wait, 20) for _ in range(2)]
        items = [item(image=b64(png(colour))) for colour in ("red", "blue")]
        body = {"items": items, "metrics": ["vqascore"], "priority": "bulk"}
        sent = asyncio.create_task(client.post("/score", json=body))
        await until(lambda: service.runtime.handles["vqa"].under_way == 2)
        sent.cancel()
        await asyncio.gather(sent, return_exceptions=True)
        gate.set()
        await asyncio.gather(*busy)
        await until(lambda: len(fakes["vqa"].calls) == 2)

        assert 0 == service.images.pixels.held
        answer = await client.post("/score", json=body)

    assert 2 == len(reserved)
    assert all(reserved)
    assert all("vqascore" in result["scores"] for result in answer.json()["results"])
