"""One large request among others: what it costs, and what it leaves to its neighbours."""

import asyncio
import gc
import json
import time
from base64 import b64decode
from contextlib import asynccontextmanager, contextmanager

import pytest

from models import fake
from models.image import Image
from service.bootstrap import Service
from service.context import Context
from service.errors import DeadlineExceeded
from service.items import Picture, UnopenedItem
from service.metrics.contract import Metric, Score
from service.metrics.registry import metrics
from service.settings.tree import Settings
from service.sources import Encoded
from tests.conftest import b64, item, png
from tests.serving.handles import until

pytestmark = pytest.mark.anyio

ITEMS, FRAMES = 128, 64  # the most that a request may hold
BATCH = 8
AT_ONCE = 3 * BATCH


@pytest.fixture
def opened(fakes, tmp_path, monkeypatch):
    """A service whose VQA model takes eight calls at once, with metrics of a test's own."""

    @asynccontextmanager
    async def opened(*own):
        known = {**metrics(), **{metric.name: metric for metric in own}}
        monkeypatch.setattr("service.bootstrap.metrics", lambda: known)
        batch = {"max_items": BATCH, "max_batch_ms": 60_000}
        tree = {
            "models": {"vqa": {"family": "fake", "batch": batch}},
            "cache": {"questions": f"sqlite:///{tmp_path}/q", "scores": "off"},
        }
        async with Service(Settings.model_validate(tree), {"vqa": fakes["vqa"]}) as service:
            yield service

    return opened


def pictures(count):
    """So many different ones."""
    return [png((n % 256, n // 256, 0), size=(2, 2)) for n in range(count)]


def items_of(count, frames):
    files = iter(pictures(count * frames))
    return [
        UnopenedItem(str(n), [Picture(Encoded(next(files))) for _ in range(frames)]) for n in range(count)
    ]


def context(service, lane="bulk"):
    deadline = asyncio.get_running_loop().time() + 600
    return Context("request", deadline, lane, service.instruments)


class Watched:
    """A metric that asks the VQA model one question, and counts how often it does so at the same time."""

    def __init__(self):
        self.now = self.most = self.done = 0
        self.metric = Metric("watched", self.score_of(), roles=("vqa",))

    def score_of(self):
        async def score(item, models, options):
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                [answer] = await models.vqa.ask(item.image, [item.prompt], "Yes")
            finally:
                self.now -= 1
            self.done += 1
            return Score(answer.probability, {"prompt": item.prompt})

        return score


async def test_a_large_request_is_worked_on_a_part_at_a_time(opened):
    """As many frames as three batches hold, which keeps batches full; all are scored, each in its place."""
    watched, items = Watched(), items_of(10, 20)
    async with opened(watched.metric) as service:
        report = await service.engine.score(items, ["watched"], context(service))

    assert AT_ONCE == watched.most
    assert 200 == watched.done
    assert not report.partial
    assert [item.prompt for item in items] == [
        scored.scores["watched"].details["frames"][0]["prompt"] for scored in report.items
    ]


async def test_a_neighbour_of_a_large_request_waits_for_what_is_under_way_of_it_and_no_more(opened, fakes):
    """Both are in one lane; the neighbour comes last, and is not the last to be served."""
    vqa = fakes["vqa"]
    async with opened() as service:
        vqa.hold.clear()
        large = asyncio.create_task(
            service.engine.score(items_of(10, 20), ["vqascore"], context(service, "interactive"))
        )
        await until(lambda: vqa.held)
        neighbour = UnopenedItem("neighbour", [Picture(Encoded(png()))])
        small = asyncio.create_task(
            service.engine.score([neighbour], ["vqascore"], context(service, "interactive"))
        )
        await until(lambda: service.runtime.handles["vqa"].under_way == AT_ONCE + 1)
        vqa.hold.set()
        reports = await asyncio.gather(large, small)

    assert not any(report.partial for report in reports)
    asked = [call.question.split('"')[1] for call in vqa.calls]
    assert asked.index("neighbour") <= AT_ONCE + BATCH


async def test_frames_that_had_not_begun_when_the_time_ran_out_are_not_even_opened(opened, monkeypatch):
    """They say that they waited for their turn."""
    opened_files, real = [], Encoded.read
    monkeypatch.setattr(Encoded, "read", lambda self, most: opened_files.append(self) or real(self, most))
    watched, items = Watched(), items_of(10, 20)
    async with opened(watched.metric) as service:
        asked = context(service)

        async def score(item, models, options):
            asked.deadline = 0.0
            return await watched.score_of()(item, models, options)

        service.engine.offer.configured["watched"] = Metric("watched", score, roles=("vqa",))
        report = await service.engine.score(items, ["watched"], asked)

    last = report.items[-1].errors["watched"]
    assert isinstance(last, DeadlineExceeded)
    assert "stage queue" in last.detail
    assert len(opened_files) <= AT_ONCE


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
    assert "send less at once" in refused.json()["detail"]
    assert "Retry-After" not in refused.headers
    assert min(times) < decoding, (min(times), decoding)
