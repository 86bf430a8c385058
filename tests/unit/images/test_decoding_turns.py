"""Requests that want the same threads for their pictures, and callers who have gone."""

import asyncio
import threading
from contextlib import asynccontextmanager
from functools import partial

import PIL.Image
import pytest

from models.images.image import Image
from service.images.loader import ImageRef
from service.scoring.plan import UnopenedItem
from service.serving.context import Context
from tests.support.pictures import png
from tests.support.services import running

pytestmark = pytest.mark.anyio


class Decoder:
    """Decodes pictures of its *kind* when it is let go, one by one, and remembers them."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.go = threading.Semaphore(0)
        self.quick: list[bytes] = []  # what is decoded at once
        decoder = self

        class Held(Image):
            def _decoded(self) -> PIL.Image.Image:
                decoder.wait(self.encoded)
                return super()._decoded()

        self.kind = Held

    def wait(self, encoded: bytes) -> None:
        """Wait until this picture may be decoded."""
        self.seen.append(encoded)
        assert encoded in self.quick or self.go.acquire(timeout=10)

    def asking(self, service, count, colour, lane="interactive"):
        """A request with *count* pictures of a colour, each of its own size."""
        context = Context("request", asyncio.get_running_loop().time() + 60, lane, service.instruments)
        items = [UnopenedItem("a", [ImageRef(data, self.kind)]) for data in pictures(count, colour)]
        return asyncio.create_task(service.engine.score(items, ["vqascore"], context))

    def has_seen(self, count: int) -> bool:
        """Whether it was asked for so many."""
        return len(self.seen) >= count


@pytest.fixture
def decoder() -> Decoder:
    return Decoder()


@pytest.fixture
def opened(fakes, tmp_path):
    """A service around the fakes with one thread to decode, once its models are warm."""

    @asynccontextmanager
    async def opened(**images):
        tree = {
            "models": {name: {"family": "fake"} for name in fakes},
            "images": {"decode_workers": 1, **images},
            "cache": {"questions": f"sqlite:///{tmp_path}/q"},
        }
        async with running(tree, fakes) as service:
            yield service

    return opened


def pictures(count: int, colour: str) -> list[bytes]:
    return [png(colour, size=(8 + number, 8)) for number in range(count)]


async def until(true):
    """Let others work until *true*; a test that hangs is worse than one that fails."""
    async with asyncio.timeout(100):
        while not true():
            await asyncio.sleep(0.001)


async def settled():
    """Let everything happen that needs no thread."""
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize("lane", ["interactive", "bulk"])
async def test_a_request_with_many_pictures_does_not_stand_before_one_with_a_single(opened, decoder, lane):
    """They take turns: it waits for one turn until it is opened, and for one until it is decoded."""
    async with opened() as service:
        many = decoder.asking(service, 60, "red", lane)
        await until(lambda: decoder.seen)
        one = decoder.asking(service, 1, "blue", lane)
        for turn in range(1, 6):
            await until(partial(decoder.has_seen, turn))
            await settled()
            decoder.go.release()
        seen = list(decoder.seen)
        decoder.go.release(60)
        reports = [await many, await one]

    assert not any(report.partial for report in reports)
    assert pictures(1, "blue")[0] in seen


@pytest.mark.parametrize("lane", ["interactive", "bulk"])
async def test_slow_pictures_keep_no_neighbour_of_the_lane_waiting(opened, decoder, lane):
    """It is answered while whatever the other request began is still being decoded."""
    async with opened(decode_workers=2) as service:
        decoder.quick = pictures(1, "blue")
        many = decoder.asking(service, 20, "red", lane)
        await until(partial(decoder.has_seen, 2))
        async with asyncio.timeout(100):
            report = await decoder.asking(service, 1, "blue", lane)
        assert not many.done()
        decoder.go.release(60)
        await many

    assert not report.partial


async def test_what_callers_who_have_gone_were_waiting_for_is_not_decoded(opened, decoder):
    """What runs ends; what waits for a thread is dropped with its request."""
    async with opened() as service:
        gone = decoder.asking(service, 60, "red")
        await until(lambda: decoder.seen)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        await settled()
        decoder.go.release(60)
        await decoder.asking(service, 1, "blue")
        assert 0 == service.images.pixels.held

    assert [pictures(1, "red")[0], pictures(1, "blue")[0]] == decoder.seen


async def test_a_broken_picture_is_decoded_once_whoever_names_it(opened, decoder):
    """128 prompts for one of them cost no more than one."""
    decoder.go.release(128)
    picture = ImageRef(png(size=(64, 64))[:-40], decoder.kind)
    async with opened() as service:
        context = Context("request", asyncio.get_running_loop().time() + 60, "bulk", service.instruments)
        items = [UnopenedItem(f"a {number}", [picture]) for number in range(128)]
        report = await service.engine.score(items, ["vqascore"], context)

    assert {"image_undecodable"} == {item.errors["vqascore"].code for item in report.items}
    assert 1 == len(decoder.seen)
