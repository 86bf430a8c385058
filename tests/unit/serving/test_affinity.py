"""Calls go to the device that has the features of their image, if it is free soon."""

from itertools import count

import pytest

from models.core.contract import Prepared
from service.serving.batcher.affinity import SOON, skips
from service.serving.batcher.batch import QueuedCall
from service.serving.batcher.device import Device
from service.serving.batcher.pool import Pool
from service.serving.batcher.queue import Queue
from service.serving.batcher.scheduler import HostedModel, Scheduler
from tests.support.devices import Words, learns, outcomes_of, until_idle
from tests.support.instruments import unread

CALL_S = 0.1


class Keeping(Words):
    """Keeps the features of each image of its batches."""

    def __init__(self, *images):
        super().__init__()
        self.features = set(images)

    def score(self, batch):
        self.features.update(call.image for call in batch)
        return super().score(batch)


def hosted(copies, **limits):
    limits = {"max_items": 2, "max_cost": 1000, "max_waiting": 10_000, **limits}
    return HostedModel("m0", next(iter(copies.values())), Queue(**limits), copies=copies)


def scheduler(**has):
    """A scheduler of a model on two devices whose calls take 0.1 s each; `has` are images by device."""
    resident = hosted({name: Keeping(*images) for name, images in has.items()})
    for calls in (1, 2) * 50:
        resident.queue.finished(calls, CALL_S * calls)
    return Scheduler([resident], 0.0), resident


def put(turns, resident, *images, lane="bulk"):
    for image in images:
        turns.put(resident, QueuedCall(Prepared(1, image, image), lane, 0.0))


def begun(turns, resident, device, now=0.0):
    """The images of the batch that begins on *device*."""
    batch = turns.begin(resident, now, device)
    return [call.prepared.data for call in batch.calls] if batch else []


@pytest.mark.parametrize(
    ("image", "device", "soon", "skipped"),
    [
        ("red", "b", {"a"}, True),
        ("red", "a", {"b"}, False),
        ("red", "b", set(), False),
        ("red", "b", {"c"}, False),
        ("green", "b", {"a"}, False),
        ("", "b", {"a"}, False),
    ],
)
def test_a_device_skips_a_call_if_one_that_is_free_soon_has_its_image(image, device, soon, skipped):
    copies = {"a": Keeping("red", ""), "b": Keeping("blue"), "c": Words()}
    assert skipped is skips(image, device, copies, soon)


def test_a_free_device_takes_what_no_other_one_has():
    turns, resident = scheduler(a=["red"], b=[])
    put(turns, resident, "red", "green", "red", "blue")

    assert ["green", "blue"] == begun(turns, resident, "b")
    assert ["red", "red"] == begun(turns, resident, "a")


def test_a_device_that_is_busy_for_long_has_its_calls_taken():
    """Computing the features again takes less time than the wait."""
    turns, resident = scheduler(a=["red"], b=[])
    put(turns, resident, "red", "red", "red")
    begun(turns, resident, "a")

    assert ["red"] == begun(turns, resident, "b")


def test_calls_wait_for_a_device_that_is_free_soon_but_not_for_one_that_is_overdue():
    """An overdue one may hang."""
    turns, resident = scheduler(a=["red"], b=[])
    put(turns, resident, "red", "red", "red")
    begun(turns, resident, "a")
    end = 2 * CALL_S

    assert [] == begun(turns, resident, "b", end - SOON * CALL_S / 2)
    assert ["red"] == begun(turns, resident, "b", end + 0.01)


def test_a_device_without_work_is_free_before_the_duration_of_a_call_is_known():
    """Then no other wait is short."""
    copies = {"a": Keeping("red"), "b": Keeping()}
    resident = hosted(copies)
    turns = Scheduler([resident], 0.0)
    put(turns, resident, "red", "red", "red")

    assert [] == begun(turns, resident, "b")
    assert ["red", "red"] == begun(turns, resident, "a")


def test_bulk_calls_that_are_skipped_keep_what_they_have_earned():
    """A device without work of its own changes nothing in the lanes."""
    turns, resident = scheduler(a=["red"], b=[])
    queue = resident.queue
    queue._credit = 0.5
    put(turns, resident, "red")

    assert [] == begun(turns, resident, "b")
    assert 0.5 == queue._credit


@pytest.mark.anyio
async def test_each_image_is_computed_on_one_device_while_both_are_idle():
    """A second question about an image finds its features, whichever device is first to see it."""
    copies = {"cpu:0": Keeping(), "cpu:1": Keeping()}
    resident, order = hosted(copies, max_items=1), count()
    async with Pool([resident], unread("m0"), devices=[Device(name) for name in copies]) as served:
        for _ in range(10):
            for image in ("red", "green", "blue"):
                call = served.submit(resident, Prepared(1, next(order), image), "interactive")
                await outcomes_of([call])

    kept = [copy.features & {"red", "green", "blue"} for copy in copies.values()]
    assert 3 == sum(map(len, kept))


@pytest.mark.anyio
async def test_every_call_is_answered_once_under_load():
    """Calls that were taken from behind others are in no batch a second time."""
    copies = {f"cpu:{number}": Keeping() for number in range(4)}
    resident, images = hosted(copies, max_items=3), ("red", "green", "blue", "")
    async with Pool([resident], unread("m0"), devices=[Device(name) for name in copies]) as served:
        calls = []
        for number in range(200):
            call, lane = Prepared(1, number, images[number % 4]), ("bulk", "interactive")[number % 2]
            calls.append(served.submit(resident, call, lane))
        assert [*range(200)] == await outcomes_of(calls)

    assert [*range(200)] == sorted(call for copy in copies.values() for call in copy.calls)


@pytest.mark.anyio
async def test_a_device_takes_calls_that_the_one_with_their_image_has_no_time_for():
    """While one is held by a batch, the other answers questions about the same image."""
    copies = {"cpu:0": Keeping("red"), "cpu:1": Keeping()}
    resident = hosted(copies, max_items=1)
    async with Pool([resident], unread("m0"), devices=[Device(name) for name in copies]) as served:
        copies["cpu:0"].hold.clear()
        first = served.submit(resident, Prepared(1, 0, "red"), "bulk")
        await until_idle()
        others = [served.submit(resident, Prepared(1, number, "red"), "bulk") for number in (1, 2, 3)]
        assert [1, 2, 3] == await outcomes_of(others)
        assert not first.result.done()
        copies["cpu:0"].hold.set()
        assert [0] == await outcomes_of([first])


@pytest.mark.anyio
async def test_a_device_that_hangs_loses_the_calls_that_waited_for_it():
    """The other one takes them when the first is overdue, without a further call or batch."""
    copies, time = {"cpu:0": Keeping("red"), "cpu:1": Keeping()}, [0.0]
    resident, devices = hosted(copies, max_items=1), [Device(name) for name in copies]
    async with Pool([resident], unread("m0"), devices=devices, clock=lambda: time[0]) as served:
        learns(resident, fixed=CALL_S)
        copies["cpu:0"].hold.clear()
        first = served.submit(resident, Prepared(1, 0, "red"), "bulk")
        await until_idle()
        time[0] = (1 - SOON / 2) * CALL_S
        second = served.submit(resident, Prepared(1, 1, "red"), "bulk")
        await until_idle()
        assert not second.running
        time[0] = 2 * CALL_S
        assert [1] == await outcomes_of([second])
        copies["cpu:0"].hold.set()
        assert [0] == await outcomes_of([first])
