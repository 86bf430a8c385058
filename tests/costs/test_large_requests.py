"""What one large request costs, and how long it holds the event loop."""

import asyncio
import gc
import json
import time
from base64 import b64decode
from contextlib import contextmanager

import pytest

from models.families.fake import model as fake
from models.images.image import Image
from tests.support.large_requests import context, items_of, pictures
from tests.support.pictures import b64, item

pytestmark = pytest.mark.anyio

ITEMS, FRAMES = 128, 64  # the most that a request may hold


@contextmanager
def without_collections():
    """The garbage collector's pauses depend on all that the process holds."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def longest_turn(work):
    """Seconds of CPU time of the event loop's thread: its longest turn, and all of them together."""
    longest, began = 0.0, time.thread_time()
    task, last = asyncio.create_task(work), began
    while not task.done():
        await asyncio.sleep(0)
        now = time.thread_time()
        longest, last = max(longest, now - last), now
    return longest, last - began, task.result()


async def test_the_largest_request_never_holds_the_event_loop_for_long(opened, fakes):
    """No turn of the loop is more than a fiftieth of the work: 8192 frames are not begun in one go."""
    fakes["vqa"] = fake.FakeModel("vqa")  # keeps nothing
    async with opened() as service:
        items = items_of(ITEMS, FRAMES)
        with without_collections():
            work = service.engine.score(items, ["vqascore"], context(service))
            longest, whole, report = await longest_turn(work)

    assert not report.partial
    assert longest < whole / 50, (longest, whole)


def body_of(count, frames, **more):
    """A request with so many pictures."""
    files = iter(pictures(count * frames))
    items = [item(f"{n}", [b64(next(files)) for _ in range(frames)]) for n in range(count)]
    return json.dumps({"items": items, **more}).encode()


def cpu_s(work):
    """Seconds of CPU time of this process, the least of three."""
    times = []
    for _ in range(3):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


async def test_reading_and_answering_it_do_not_hold_the_event_loop_either(serve, fakes, tmp_path):
    """With 8192 explanations."""
    fakes["vqa"] = fake.FakeModel("vqa")
    body = body_of(ITEMS, FRAMES, priority="bulk", explain=True, timeout_ms=600_000)
    async with serve(cache={"questions": f"sqlite:///{tmp_path}/q", "scores": "off"}) as client:
        with without_collections():
            work = client.post("/score", content=body, headers={"Content-Type": "application/json"})
            longest, whole, answer = await longest_turn(work)

    assert FRAMES == len(answer.json()["results"][-1]["details"]["vqascore"]["frames"])
    assert longest < whole / 20, (longest, whole)


async def test_a_request_that_is_too_large_is_refused_before_a_picture_is_decoded(serve):
    """What it costs is told from its JSON, for less than decoding its pictures would take."""
    body = body_of(ITEMS, FRAMES)
    async with serve(queue={"max_cost": 1000}) as client:
        times = []
        with without_collections():
            for _ in range(3):
                began = time.process_time()
                refused = await client.post(
                    "/score", content=body, headers={"Content-Type": "application/json"}
                )
                times.append(time.process_time() - began)
            files = [text for one in json.loads(body)["items"] for text in one["image"]]
            decoding = cpu_s(lambda: [Image(b64decode(text)).rgb for text in files])
        fine = await client.post("/score", json={"items": [item()]})

    assert (413, "too_large", 200) == (refused.status_code, refused.json()["code"], fine.status_code)
    assert "split it" in refused.json()["detail"]
    assert "Retry-After" not in refused.headers
    assert min(times) < decoding, (min(times), decoding)
