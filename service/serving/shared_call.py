"""Unfinished calls of a model, each shared by all requests that contain it."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from time import monotonic

from models.core.calls import Call
from models.core.contract import ModelInfo, Prepared
from models.core.outcomes import CallResult
from service.core.concurrency.promise import Promise, all_done
from service.core.concurrency.tasks import Tasks
from service.core.errors import Draining, ModelChanged, ModelFault, ScoregateError
from service.core.lanes import BULK, INTERACTIVE
from service.serving.backends.prepare import decoding_s, images_in_use
from service.serving.cache.memory import Cache
from service.serving.context import Context
from service.serving.contract import Backend, Result, StartedCall

log = logging.getLogger("scoregate.models")

BULK_KEPT_S = 10.0  # how long a bulk call without callers is kept: trainers retry the same body


class SharedCall:
    """
    A call that runs as long as it has callers.

    Attributes:
        key: its cache key.
        model: the model that the key names; no other model may answer it.
        lane, deadline: the most urgent lane and the latest deadline of its callers.
        cache: stores its outcome, if any does.
        callers: number of requests that wait for it.
        result: becomes the result for all callers.
        answered: when it did, by `time.monotonic`.
        prepared_s: seconds of its group's preparation, from opening the images on, without decoding.
        started: the backend's call; None while it is being prepared.
        group: the calls that are prepared together with it, including itself.
        preparing: the task that prepares and starts the group.
    """

    answered: float
    group: Sequence["SharedCall"]
    preparing: asyncio.Task[None]

    def __init__(
        self, key: bytes, call: Call, model: ModelInfo, lane: str, deadline: float, cache: Cache | None = None
    ) -> None:
        self.key, self.call, self.model, self.cache = key, call, model, cache
        self.lane, self.deadline = lane, deadline
        self.callers = 0
        self.prepared_s = 0.0
        self.result: Promise[Result] = Promise()
        self.started: StartedCall | None = None

    def promote(self) -> None:
        """Make it interactive."""
        if self.lane == BULK:
            self.lane = INTERACTIVE
            if self.started is not None:
                self.started.promote()

    def extend(self, deadline: float) -> None:
        """Allow an answer until *deadline*."""
        self.deadline = max(self.deadline, deadline)
        if self.started is not None:
            self.started.extend(self.deadline)

    def answer(self, result: Result) -> None:
        """Set the result, unless the call was cancelled."""
        if not self.result.done():
            self.answered = monotonic()
            self.result.set_result(result)

    def finish(self, finished: Promise[Result]) -> None:
        """Answer with the backend's result, and cache it."""
        if finished.cancelled():
            self.answer(Result(Draining()))
            return
        result = finished.result()
        self.answer(result)  # first: callers do not wait for the cache
        if self.cache is not None and isinstance(result.outcome, CallResult):
            self.cache.keep(self.key, result.outcome)

    def cancel_if_unused(self) -> None:
        """Stop the work if there are no callers.  A group's preparation stops with its last call."""
        if self.callers or self.result.done():
            return
        self.result.cancel()
        if self.started is not None:
            self.started.cancel()
        elif all(sibling.result.done() for sibling in self.group):
            self.preparing.cancel()


def stage(calls: Sequence[SharedCall]) -> str:
    """Return the stage that a group has reached: "decode", "queue" or "model"."""
    started = [call.started for call in calls if call.started is not None]
    if any(call.running for call in started):
        return "model"
    return "queue" if started else "decode"


class SharedCalls:
    """
    The unfinished calls of one model.

    When all callers of a call have left, interactive work is cancelled, and bulk work is kept for
    `BULK_KEPT_S`.

    Args:
        call_later: the event loop's by default.
    """

    def __init__(
        self, backend: Backend, call_later: Callable[[float, Callable[[], None]], object] | None = None
    ) -> None:
        self._backend, self._call_later = backend, call_later
        self._calls: dict[bytes, SharedCall] = {}
        self._preparing = Tasks()
        self._closed = False

    def __len__(self) -> int:
        return len(self._calls)

    async def aclose(self) -> None:
        """Return when all groups have been prepared and handed to the backend."""
        self._closed = True
        await self._preparing.wait()

    async def idle(self) -> None:
        """Return when every call has its result."""
        while self._calls:
            await all_done([call.result for call in self._calls.values()])

    def join(
        self,
        wanted: Iterable[tuple[bytes, Call]],
        model: ModelInfo,
        cache: Cache | None,
        context: Context,
    ) -> tuple[list[SharedCall], set[SharedCall]]:
        """
        Join the call under each key, and start those that are new.

        Returns:
            One call for each of *wanted*, and those that are new.
        """
        joined: list[SharedCall] = []
        new: list[SharedCall] = []
        for key, call in wanted:
            shared = self._calls.get(key)
            if shared is None:
                kept = cache if call.cacheable else None
                shared = SharedCall(key, call, model, context.lane, context.deadline, kept)
                self._calls[key] = shared
                shared.result.add_done_callback(partial(self._forget, key))
                new.append(shared)
            else:
                if context.lane == INTERACTIVE:
                    shared.promote()
                shared.extend(context.deadline)
            shared.callers += 1
            joined.append(shared)
        if new:
            task = self._preparing.start(self._prepare_and_start(new, context))
            for shared in new:
                shared.preparing, shared.group = task, new
        return joined, set(new)

    def leave(self, shared: SharedCall) -> None:
        """Remove one caller of *shared*."""
        shared.callers -= 1
        if shared.callers or shared.result.done():
            return
        if shared.lane == BULK and not self._closed:
            later = self._call_later or asyncio.get_running_loop().call_later
            shared.extend(shared.deadline + BULK_KEPT_S)
            later(BULK_KEPT_S, shared.cancel_if_unused)
        else:
            shared.cancel_if_unused()

    def _forget(self, key: bytes, result: Promise[Result]) -> None:
        del self._calls[key]

    async def _prepare_and_start(self, group: list[SharedCall], context: Context) -> None:
        """
        Prepare a group and queue it in one step, so that it shares batches.

        Afterwards each call of the group has been started or answered, even after an exception.
        """
        fault: ScoregateError = Draining()  # if the task is cancelled: the event loop ends
        try:
            since, calls = context.since, [shared.call for shared in group]
            with images_in_use(calls):  # their requests may end before
                prepared = await self._backend.prepare(calls, context.lane)
                prepared_s = monotonic() - since - decoding_s(calls, since)
            for shared in group:
                shared.prepared_s = prepared_s
            self._start_each(group, prepared, context)
        except Exception as exc:
            fault = ModelFault(f"the model {self._backend.name} failed to prepare this call")
            log.error("group not prepared", extra={"model": self._backend.name}, exc_info=exc)
        finally:
            for shared in group:
                if shared.started is None:
                    shared.answer(Result(fault))
                shared.group = ()  # a reference cycle keeps all of the group until a garbage collection

    def _start_each(
        self, group: Sequence[SharedCall], prepared: Sequence[Prepared | ScoregateError], context: Context
    ) -> None:
        for shared, made in zip(group, prepared, strict=True):
            if shared.result.done():  # all callers have left
                continue
            try:
                if shared.model.identity != self._backend.info.identity:
                    raise ModelChanged
                if isinstance(made, ScoregateError):
                    raise made
                shared.started = self._backend.start(
                    made, shared.lane, shared.deadline, span=context.span, request_id=context.request_id
                )
            except ScoregateError as refusal:
                shared.answer(Result(refusal))
            else:
                shared.started.result.add_done_callback(shared.finish)
