"""A model of this process that cannot go, or cannot come back; and another revision in its place."""

import asyncio
import gc
import threading
import weakref
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from models.core.contract import CheckpointAway
from models.core.copies import Copies
from models.families.fake import FakeSettings
from service.core.concurrency.cpu_threads import FairThreads
from service.core.errors import ModelFault, NotReady, ScoregateError
from service.core.lanes import LANES
from service.serving.backends import local
from service.serving.batcher.batching import Queue
from service.serving.batcher.device import Device
from service.serving.batcher.pool import Pool
from service.serving.batcher.scheduler import HostedModel
from service.serving.cache import NO_CACHE
from service.serving.handle import Handle
from service.serving.lifecycle import Lifecycle
from tests.support.fakes import FakeVqa
from tests.support.handles import call, context, until
from tests.support.instruments import unread
from tests.support.leaps import leap

pytestmark = pytest.mark.anyio

DEVICES = ("cpu:0", "cpu:1")
TABLE = FakeSettings(role="vqa", family="fake", devices=DEVICES)


class Weights:
    """
    Where the weights of each copy are; *fails* has the moves that raise, once each.

    `loading` is called by each load, and `checked` by each check.
    """

    def __init__(self):
        self.here, self.fails, self.tables = weakref.WeakKeyDictionary(), [], []
        self.fault = None  # of the copies that are loaded
        self.wrong = False  # whether copies give other outcomes
        self.loading = self.checked = lambda: None

    def loader(self):
        return local.WeightLoader(
            check=self.check,
            load=self.load,
            offload=self.offload,
            drop=lambda copy: self.move("drop", copy, False),
        )

    def check(self, name, table, given_back):
        self.checked()

    def move(self, how, copy, here):
        if self.fails and how == self.fails[0]:
            raise MemoryError(self.fails.pop(0))
        self.here[copy] = here

    def offload(self, copy):
        self.move("offload" if copy.first else "offload second", copy, False)
        return lambda: self.move("restore" if copy.first else "restore second", copy, True)

    def load(self, name, table):
        self.loading()
        self.tables.append(table)
        return self.made(table.devices, {"main": "1"}.get(table.revision, table.revision))

    def made(self, devices, revision="1"):
        copies = {device: FakeVqa() for device in devices}
        for device, copy in copies.items():
            copy.info = replace(copy.info, revision=revision or "1")
            copy.fault = lambda call: self.fault
            copy.answer = partial(self.answer, copy.answer)
            copy.first = device == DEVICES[0]
            self.here[copy] = True
        return Copies(copies)

    def answer(self, own, call):
        return own(replace(call, question="Something else?") if self.wrong else call)


@pytest.fixture
def weights():
    return Weights()


@asynccontextmanager
async def serving(weights):
    """A handle on a model with two devices, and what changes it."""
    model, threads = weights.made(DEVICES), FairThreads(2, "cpu")
    queue = Queue(max_items=8, max_cost=1000, max_waiting=10_000)
    hosted = HostedModel("vqa", model, queue, copies=dict(model.on))
    del model  # it may be replaced
    devices = [Device(name) for name in DEVICES]
    with threads as cpu:
        async with Pool([hosted], unread("vqa"), devices=devices) as pool:
            lanes = dict.fromkeys(LANES, cpu)
            backend = local.LocalBackend(hosted, pool, TABLE, lanes, cpu, weights.loader())
            handle = Handle(backend, NO_CACHE)
            runtime = SimpleNamespace(handles={"vqa": handle})
            yield handle, hosted, Lifecycle(runtime, unread("vqa"))
            await handle.aclose()


async def answered(handle, question="Is it?"):
    """True if a call has an outcome before its deadline."""
    [outcome] = await handle.call([call(question)], context())
    return not isinstance(outcome, Exception)


@pytest.mark.parametrize(
    ("action", "fails"), [("offload", "offload"), ("offload", "offload second"), ("unload", "drop")]
)
async def test_a_model_that_cannot_go_serves_on(weights, action, fails):
    """The copies that had gone are brought back."""
    async with serving(weights) as (handle, hosted, lifecycle):
        weights.fails = [fails]
        with pytest.raises(NotReady, match="too little free memory"):
            await lifecycle.change("vqa", action)

        assert "loaded" == handle.backend.presence.state
        assert [True, True] == [weights.here[copy] for copy in hosted.copies.values()]
        assert await answered(handle)


async def test_a_model_that_cannot_go_and_cannot_be_brought_back_is_away(weights):
    """Its calls are rejected, and it can be loaded."""
    async with serving(weights) as (handle, _, lifecycle):
        weights.fails = ["offload second", "restore"]
        with pytest.raises(NotReady):
            await lifecycle.change("vqa", "offload")
        with pytest.raises(NotReady, match=r"taken away \(offloaded\)"):
            await answered(handle)

        assert "loaded" == (await lifecycle.change("vqa", "load")).state
        assert await answered(handle)


async def test_a_load_that_does_not_end_is_given_up(weights):
    """503; the one before comes back, and what is loaded after all is dropped."""
    async with serving(weights) as (handle, hosted, lifecycle):
        begun, ended, before = threading.Event(), threading.Event(), [*hosted.copies.values()]

        def hang():
            begun.set()
            assert ended.wait(60)

        weights.loading = hang
        change = asyncio.create_task(lifecycle.change("vqa", "load", "2"))
        await until(begun.is_set)
        leap(local.LOAD_S)
        with pytest.raises(NotReady, match="not loaded within"):
            await change

        assert "loaded" == handle.backend.presence.state
        assert before == [*hosted.copies.values()]
        ended.set()
        assert await answered(handle)


@pytest.mark.parametrize("action", ["offload", "unload"])
async def test_a_model_that_comes_back_wrong_gives_its_memory_back(weights, action):
    """It can be tried again."""
    async with serving(weights) as (handle, hosted, lifecycle):
        away = (await lifecycle.change("vqa", action)).state
        weights.wrong = True
        with pytest.raises(ModelFault, match="other numbers than at the first start"):
            await lifecycle.change("vqa", "load")

        weights.wrong = False
        assert away == handle.backend.presence.state
        assert [False, False] == [weights.here[copy] for copy in hosted.copies.values()]
        await lifecycle.change("vqa", "load")
        assert await answered(handle)


async def test_a_load_without_enough_memory_is_tried_again_later(weights):
    """503 with Retry-After; no copy stays on its device."""
    async with serving(weights) as (handle, hosted, lifecycle):
        await lifecycle.change("vqa", "offload")
        weights.fails = ["restore second"]
        with pytest.raises(NotReady, match=r"models.vqa: MemoryError: restore second") as refused:
            await lifecycle.change("vqa", "load")

        assert refused.value.retry_after_s
        assert [False, False] == [weights.here[copy] for copy in hosted.copies.values()]
        assert "offloaded" == handle.backend.presence.state
        assert "loaded" == (await lifecycle.change("vqa", "load")).state


@pytest.mark.parametrize("action", ["offload", "unload"])
async def test_a_model_is_loaded_on_the_devices_that_serve(weights, action):
    """One that was taken out is not touched."""
    async with serving(weights) as (handle, hosted, lifecycle):
        lost = hosted.copies.pop("cpu:1")
        await lifecycle.change("vqa", action)
        await lifecycle.change("vqa", "load")
        await lifecycle.change("vqa", "load", "2")

        assert {("cpu:0",)} == {table.devices for table in weights.tables}
        assert weights.here[lost]
        assert await answered(handle)


async def test_a_device_that_is_lost_while_a_revision_is_loaded_stays_out(weights):
    """The others serve the new one."""
    async with serving(weights) as (handle, hosted, lifecycle):
        weights.loading = lambda: hosted.copies.pop("cpu:1")
        await lifecycle.change("vqa", "load", "2")

        assert ["cpu:0"] == [*hosted.copies]
        assert "2" == handle.info.revision
        assert await answered(handle)


@pytest.mark.parametrize("fault", [ValueError("broken"), MemoryError("full")])
async def test_the_old_revision_comes_back_if_the_new_one_fails_on_its_example(weights, fault):
    """The answer is the error, and the new one's weights are freed."""
    async with serving(weights) as (handle, hosted, lifecycle):
        before = dict(hosted.copies)
        weights.fault = fault
        for copy in before.values():
            copy.fault = lambda call: None
        with pytest.raises(ScoregateError, match=str(fault)):
            await lifecycle.change("vqa", "load", "2")

        assert ("loaded", "1") == (handle.backend.presence.state, handle.info.revision)
        assert before == hosted.copies
        assert {*before.values()} == {copy for copy, here in weights.here.items() if here}
        assert await answered(handle)


async def test_an_old_revision_that_cannot_come_back_is_away(weights):
    """Its calls are rejected, and it can be loaded."""
    async with serving(weights) as (handle, hosted, lifecycle):
        weights.fault = ValueError("broken")
        for copy in hosted.copies.values():
            copy.fault = lambda call: None
        weights.fails = ["restore"]
        with pytest.raises(ModelFault, match="broken"):
            await lifecycle.change("vqa", "load", "2")
        with pytest.raises(NotReady, match=r"taken away \(offloaded\)"):
            await answered(handle)

        assert "loaded" == (await lifecycle.change("vqa", "load")).state
        assert ("1", True) == (handle.info.revision, await answered(handle))


async def test_the_weights_of_the_revision_before_are_freed(weights):
    """Nothing refers to them when the new one serves."""
    async with serving(weights) as (handle, hosted, lifecycle):
        before = [weakref.ref(copy) for copy in hosted.copies.values()]
        await lifecycle.change("vqa", "load", "2")

        def left():
            gc.collect()
            return [copy for copy in before if copy()]

        await until(lambda: not left())  # a device's thread may still return from its last batch
        assert await answered(handle)


async def test_a_revision_for_which_memory_is_missing_stops_nothing(weights):
    """It is checked while the model serves."""
    async with serving(weights) as (handle, hosted, lifecycle):

        def check():
            raise CheckpointAway("models.vqa: the weights take 8 bytes, 4 are free")

        weights.checked = check
        with pytest.raises(NotReady, match="4 are free"):
            await lifecycle.change("vqa", "load", "2")

        assert [True, True] == [weights.here[copy] for copy in hosted.copies.values()]
        assert await answered(handle)


@pytest.mark.parametrize("other", ["load", "offload"])
async def test_a_model_that_waits_for_its_need_is_loaded_once(weights, other):
    """Also where an operator's change of it is under way; it serves when all who need it go on."""
    async with serving(weights) as (handle, _, lifecycle):
        await lifecycle.change("vqa", "unload")
        handle.backend.presence.wait_for_need()
        before = len(weights.tables)
        changing = asyncio.create_task(lifecycle.change("vqa", other))
        await asyncio.sleep(0)
        await asyncio.gather(changing, *(lifecycle.load_awaited(handle) for _ in range(3)))

        assert 1 == len(weights.tables) - before
        assert not handle.backend.presence.awaited
        assert await answered(handle)
