"""How calls are counted, by each way in which one ends: the same on devices, model servers and replicas."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from models.core.calls import GenerateCall, LikelihoodCall
from models.core.contract import ModelError
from models.core.outcomes import Likelihood, Reward
from models.images.image import Image
from service.core.errors import (
    CallRefused,
    DeadlineExceeded,
    Draining,
    ImageUndecodable,
    ModelChanged,
    ModelFault,
    ScoregateError,
    UpstreamFailed,
)
from service.observability.instruments import Instruments
from service.serving.backends.upstream import Unreachable
from service.serving.handle import Handle
from service.serving.job import JobResult
from service.serving.ray.groups import GroupResult, Work
from tests.support import handles
from tests.support.devices import FaultyQueue, outcomes_of, pool, put, until_idle
from tests.support.handles import asking, call, until
from tests.unit.serving import test_lanes_before_a_server as servers
from tests.unit.serving.ray import replicas

pytestmark = pytest.mark.anyio

GOOD, NOT_A_NUMBER = Reward((1.0,)), Reward((math.nan,))
MANY = 40  # calls, more than any backend runs at once


@dataclass
class Case:
    """
    A backend, and the ways in which its running calls end.

    Attributes:
        running: returns True while the backend runs calls.
        now: the backend's clock, in seconds.
    """

    handle: Handle
    instruments: Instruments
    running: Callable[[], bool]
    make: Callable[[str], Any]
    ends: dict[str, Callable[[], Awaitable[None] | None]]
    now: list[float] = field(default_factory=lambda: [0.0])

    async def begin(self, calls=1, **more):
        """A task that waits for calls that run, and its context."""
        task, asked = asking(self.handle, *(self.make(f"{number}?") for number in range(calls)), **more)
        await until(lambda: self.running() or task.done())
        return task, asked

    async def end(self, way):
        """End the running calls in that *way*."""
        if (ended := self.ends[way]()) is not None:
            await ended

    def form_no_more_batches(self):
        """From now on the queues of the backend fail when they should."""
        for _, hosted in self.handle.backend.queues:
            hosted.queue.broken = True

    @property
    def counted(self):
        """The number of calls by result."""
        return counted(self.instruments)

    @property
    def waits(self):
        """The number of calls whose wait for a batch has been measured."""
        [series] = self.instruments.queue_wait.collect()
        return sum(each.value for each in series.samples if each.name.endswith("_count"))


def counted(instruments):
    """The number of calls by result, without those that are 0."""
    [series] = instruments.calls.collect()
    samples = [each for each in series.samples if each.name == "scoregate_calls_total" and each.value]
    assert len(samples) == len({each.labels["result"] for each in samples})
    return {each.labels["result"]: each.value for each in samples}


@asynccontextmanager
async def devices():
    """A pool of one device."""
    instruments, now = Instruments(["vqa"]), [0.0]
    async with handles.serving(instruments=instruments, clock=lambda: now[0], queue=FaultyQueue) as (
        handle,
        model,
        *_,
    ):
        model.hold.clear()

        def finish(outcome):
            model.answer = lambda call: outcome
            model.hold.set()

        def fail(fault):
            model.fault = fault
            model.hold.set()

        async def close():
            leaving = asyncio.create_task(handle.backend._pool.__aexit__())
            await until_idle()
            model.hold.set()
            await leaving

        def crash():
            [loop], handle.backend._pool._tasks = handle.backend._pool._tasks, []
            loop.cancel()
            model.hold.set()

        ends = {
            "answered": lambda: finish(GOOD),
            "not finite": lambda: finish(NOT_A_NUMBER),
            "failed": lambda: fail(lambda asked: ValueError("no") if asked != model.example() else None),
            "broke": lambda: fail(lambda asked: RuntimeError("CUDA error")),
            "crashed": crash,
            "closed": close,
        }
        yield Case(handle, instruments, lambda: model.held, call, ends, now)
        model.hold.set()


@asynccontextmanager
async def server():
    """A model server."""
    async with servers.serving(FaultyQueue) as (handle, model, now, instruments):

        def finish(outcome):
            for text in [*model.waiting]:
                model.answers(text, outcome)

        ends = {
            "answered": lambda: finish(GOOD),
            "not finite": lambda: finish(NOT_A_NUMBER),
            "broke": lambda: finish(Unreachable("cannot be reached (ConnectError)")),
            "late": lambda: finish(Unreachable("cannot be reached (ReadTimeout)")),
            "refused": lambda: finish(ModelError("the server refused this question")),
            "crashed": lambda: finish(ValueError("a bug")),
            "closed": lambda: handle.backend.__aexit__(),
        }
        yield Case(
            handle, instruments, lambda: bool(model.waiting), lambda text: GenerateCall("", text), ends, now
        )


@asynccontextmanager
async def replicated():
    """A replica."""
    instruments, now = Instruments(["vqa"]), [0.0]
    async with replicas.asked(instruments=instruments, clock=lambda: now[0], queue=FaultyQueue, a="m") as (
        deployment,
        handle,
        backend,
    ):

        def finish(outcome, **more):
            for group in deployment.under_way:
                group.said.set_result(GroupResult([JobResult(outcome, **more)] * len(group.calls), Work()))

        def crash():
            deployment.under_way[0].said.set_exception(RuntimeError("a bug"))

        async def lose():
            for _ in range(3):
                await replicas.sent(deployment, 1)
                deployment.under_way[0].lost()

        async def replace():
            groups = deployment.under_way
            deployment.runs(b="new")
            while handle.info.label != "new@1":
                await asyncio.sleep(0)
            for group in groups:
                group.lost()

        ends = {
            "answered": lambda: finish(GOOD),
            "not finite": lambda: finish(NOT_A_NUMBER),
            "failed": lambda: finish(ModelFault("it failed")),
            "broke": lose,
            "replaced": replace,
            "late": lambda: finish(DeadlineExceeded(stage="queue"), refused=True),
            "refused": lambda: finish(ImageUndecodable("no picture"), refused=True),
            "crashed": crash,
            "closed": lambda: backend.__aexit__(),
        }
        yield Case(handle, instruments, lambda: bool(deployment.under_way), call, ends, now)


BACKENDS = {"devices": devices, "server": server, "replicas": replicated}
each_backend = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)


@each_backend
async def test_a_call_that_was_answered_is_counted_as_ok(backend):
    async with backend() as case:
        task, _ = await case.begin()
        await case.end("answered")
        assert [GOOD] == await task
        assert {"ok": 1} == case.counted


@pytest.mark.parametrize(
    ("backend", "way", "error"),
    [
        ("devices", "not finite", ModelFault),
        ("devices", "failed", ModelFault),
        ("devices", "broke", ModelFault),
        ("devices", "crashed", Draining),
        ("server", "not finite", ModelFault),
        ("server", "broke", UpstreamFailed),
        ("server", "late", UpstreamFailed),
        ("server", "refused", CallRefused),
        ("server", "crashed", ModelFault),
        ("server", "closed", Draining),
        ("replicas", "not finite", ModelFault),
        ("replicas", "failed", ModelFault),
        ("replicas", "broke", ModelFault),
        ("replicas", "replaced", ModelChanged),
        ("replicas", "crashed", ModelFault),
        ("replicas", "closed", Draining),
    ],
)
async def test_a_running_call_that_ends_without_a_result_is_counted_as_an_error(backend, way, error):
    """Once, however it ends; its caller gets the error."""
    async with BACKENDS[backend]() as case:
        task, _ = await case.begin()
        await case.end(way)
        assert [error] == [type(outcome) for outcome in await task]
        assert {"error": 1} == case.counted


@pytest.mark.parametrize("backend", [devices, server])
async def test_a_call_that_cannot_be_prepared_is_not_counted(backend):
    """No model had it."""
    async with backend() as case:
        task, _ = asking(case.handle, LikelihoodCall(Image(b"no picture"), "Is it?"))
        [outcome] = await task
        assert isinstance(outcome, ScoregateError)
        assert ({}, 0) == (case.counted, case.waits)


@pytest.mark.parametrize(("way", "error"), [("refused", ImageUndecodable), ("late", DeadlineExceeded)])
async def test_a_call_that_no_batch_of_a_replica_took_is_not_counted(way, error):
    """As where the model is in this process: it could not be prepared, or its deadline passed."""
    async with replicated() as case:
        task, _ = await case.begin(seconds=0.0)
        await case.end(way)
        assert [error] == [type(outcome) for outcome in await task]
        assert ({}, 0) == (case.counted, case.waits)


@each_backend
async def test_a_running_call_whose_callers_left_is_counted_as_cancelled(backend):
    """Whether its result comes or not."""
    async with backend() as case:
        task, _ = await case.begin()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await case.end("answered")
        await until(lambda: case.counted)
        assert {"cancelled": 1} == case.counted


@each_backend
async def test_a_call_that_leaves_while_it_waits_is_not_counted(backend):
    """As one whose deadline passes before a batch takes it: no model had it."""
    async with backend() as case:
        task, asked = await case.begin(MANY)
        case.now[0] = asked.deadline + 1
        while not task.done():
            await case.end("answered")
            await asyncio.sleep(0)
        answered = task.result().count(GOOD)

        assert {DeadlineExceeded} == {type(outcome) for outcome in task.result() if outcome is not GOOD}
        assert 0 < answered < MANY
        assert {"ok": answered} == case.counted


@pytest.mark.parametrize(
    ("backend", "way", "error"),
    [
        ("devices", "closed", Draining),
        ("devices", "crashed", Draining),
        ("devices", "broke", ModelFault),
        ("server", "closed", Draining),
        ("replicas", "closed", Draining),
        ("replicas", "replaced", ModelChanged),
    ],
)
async def test_calls_that_wait_when_their_queue_ends_are_counted_as_errors(backend, way, error):
    """Once each, as those that run, with the error that their callers get; their wait is not a batch's."""
    async with BACKENDS[backend]() as case:
        task, _ = await case.begin(MANY)
        await case.end(way)
        outcomes = [type(outcome) for outcome in await task]
        answered = outcomes.count(Reward) + outcomes.count(Likelihood)
        assert [error] * (MANY - answered) == [each for each in outcomes if issubclass(each, Exception)]
        assert {"error": MANY - answered, "ok": answered} == {"ok": 0, **case.counted}
        assert 0 < case.waits < MANY


@each_backend
async def test_calls_that_wait_get_an_error_when_their_queue_fails_to_form_a_batch(backend):
    """They are counted as those of a queue that is closed; those that run are answered."""
    with suppress(ZeroDivisionError):  # a pool ends with the error of a loop
        async with backend() as case:
            task, _ = await case.begin(MANY)
            case.form_no_more_batches()
            await case.end("answered")
            outcomes = await task
            answered = outcomes.count(GOOD)
            assert {Draining} == {type(outcome) for outcome in outcomes if outcome is not GOOD}
            assert 0 < answered < MANY
            assert {"ok": answered, "error": MANY - answered} == case.counted
            assert answered == case.waits


async def test_calls_of_a_batch_that_broke_its_device_are_counted_once_each():
    """That of a half that was answered before as ok, and none of them again."""
    served, hosted, copies = pool("cpu:0")
    async with served:
        calls = put(served, hosted, "fine", "poison")
        copies["cpu:0"].fault = lambda asked: RuntimeError("CUDA error") if asked != "fine" else None
        fine, poison = await outcomes_of(calls)

    assert ("fine", ModelFault) == (fine, type(poison))
    assert {"ok": 1, "error": 1} == counted(served._instruments)


async def test_a_call_that_its_callers_left_before_its_device_broke_is_counted_as_cancelled():
    """Nobody waits for a retry; the other call of its batch is counted by its retry."""
    served, hosted, copies = pool("cpu:0", "cpu:1")
    broken, other = copies.values()
    async with served:
        for copy in copies.values():
            copy.hold.clear()
        stays, leaves = put(served, hosted, "stays", "leaves")
        await until(lambda: broken.held or other.held)
        broken, other = (broken, other) if broken.held else (other, broken)
        leaves.result.cancel()
        broken.fault = lambda asked: RuntimeError("CUDA error")
        for copy in copies.values():
            copy.hold.set()
        assert ["stays"] == await outcomes_of([stays])

    assert {"ok": 1, "cancelled": 1} == counted(served._instruments)


async def test_a_call_that_its_callers_left_before_its_replica_was_lost_is_counted_as_cancelled():
    """As on a device."""
    instruments = Instruments(["vqa"])
    async with replicas.asked(instruments=instruments, a="m", b="m") as (deployment, handle, _):
        leaves, _ = asking(handle, call("stays?"), call("leaves?"))  # one request, so that they are one group
        await replicas.sent(deployment, 1)
        stays, _ = asking(handle, call("stays?"))
        [group] = deployment.under_way
        assert ["stays?", "leaves?"] == group.questions
        await asyncio.sleep(0)  # the second request waits for the job of the first
        leaves.cancel()
        await asyncio.gather(leaves, return_exceptions=True)
        group.lost()
        await replicas.answered(deployment, stays)
        assert {"ok": 1, "cancelled": 1} == counted(instruments)
