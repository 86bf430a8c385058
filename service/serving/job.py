"""A job: a call on its way to a model, shared by all its requests, and the promise of its result."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any, Generic, TypeVar, cast

from models.core.calls import Call
from models.core.contract import ModelInfo
from models.core.outcomes import CallResult
from service.core.errors import ScoregateError
from service.core.lanes import BULK, INTERACTIVE
from service.observability.tracing import NO_SPAN, Span

log = logging.getLogger("scoregate.promise")

T = TypeVar("T")


class Promise(Generic[T]):
    """
    A future whose callbacks run synchronously in `set_result`.

    A chain of promises takes one turn of the event loop instead of one for each.  As with a future, an
    exception of a callback is logged; the others are called all the same.
    """

    __slots__ = ("_callbacks", "_cancelled", "_done", "_result")

    def __init__(self) -> None:
        self._done = self._cancelled = False
        self._result: T | None = None
        self._callbacks: list[Callable[[Promise[T]], object]] = []

    def __await__(self) -> Generator[object, None, T]:
        yield from all_done([self]).__await__()
        return self.result()

    def done(self) -> bool:
        """Return True if it has its result or was cancelled."""
        return self._done

    def cancelled(self) -> bool:
        """Return True if it was cancelled."""
        return self._cancelled

    def result(self) -> T:
        """Return the result.  Raises `CancelledError` if cancelled, `InvalidStateError` if not done."""
        if self._cancelled:
            raise asyncio.CancelledError
        if not self._done:
            raise asyncio.InvalidStateError("the result is not set")
        return cast(T, self._result)

    def set_result(self, result: T) -> None:
        """Set the result, and call the callbacks.  Raises `InvalidStateError` if it is done."""
        if self._done:
            raise asyncio.InvalidStateError("the promise is done")
        self._result = result
        self._call_back()

    def cancel(self) -> bool:
        """Cancel it, and call the callbacks; return False if it is done."""
        if self._done:
            return False
        self._cancelled = True
        self._call_back()
        return True

    def add_done_callback(self, callback: "Callable[[Promise[T]], object]") -> None:
        """Call *callback* with this promise when it is done; now if it is."""
        if self._done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def remove_done_callback(self, callback: "Callable[[Promise[T]], object]") -> None:
        """Remove *callback*, if it is there."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    def _call_back(self) -> None:
        self._done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback(self)
            except Exception as exc:
                log.error("a callback failed", exc_info=exc)


async def all_done(promises: Sequence[Promise[T]]) -> None:
    """Return when all of them have a result or are cancelled."""
    waiting = [promise for promise in promises if not promise.done()]
    if not waiting:
        return
    all_of_them, left = asyncio.get_running_loop().create_future(), len(waiting)

    def count_down(promise: Promise[T]) -> None:
        nonlocal left
        left -= 1
        if not left and not all_of_them.done():
            all_of_them.set_result(None)

    for promise in waiting:
        promise.add_done_callback(count_down)
    try:
        await all_of_them
    finally:
        if left:
            for promise in waiting:
                promise.remove_done_callback(count_down)


@dataclass(frozen=True, slots=True)
class JobResult:
    """
    The outcome of one job, and its times.

    Attributes:
        outcome: the model's `CallResult`, or the `ScoregateError` that takes its place.
        waited_s: seconds from joining the queue to the start of the batch; 0 if no batch took the call.
        ran_s: seconds that its batch took; 0 if no batch finished.
        batch_span: the traceparent of its batch's span; empty if that was not recorded.
        decoded_s, prepared_s: seconds of these stages in a replica; 0 for a model of this process.
        refused: it ended while no batch had it, by an error or its deadline, and is not counted.
    """

    outcome: CallResult | ScoregateError
    waited_s: float = 0.0
    ran_s: float = 0.0
    batch_span: str = ""
    decoded_s: float = 0.0
    prepared_s: float = 0.0
    refused: bool = False


@dataclass(eq=False, slots=True)
class Job:
    """
    One call, from its request to its result.

    Attributes:
        prepared: the call as `Prepared`; None before that.
        lane: the most urgent one of its callers.
        deadline: the latest one of its callers, on the event loop's clock; once all have left, until when it
            is kept.
        arrived: time of joining the queue, in seconds.
        call: the call itself; None if only the prepared one is known here.
        model: the model that must answer it: the outcome is cached under its identity.
        span, request_id: of the first caller.
        result: becomes its `JobResult`; cancelled if all callers have gone.
        callers: number of requests that wait for it, by each lane that had any.
        running: its batch has begun.
        prepared_s: seconds of its group's preparation, without decoding.
        waited_s: seconds in the queue, set when its batch begins.
        answered: when the result was set, by `time.monotonic`.
        batch_span: the traceparent of its batch's span, if that is recorded.
        losses: number of devices or replicas that were lost while they had it.
        on_move: called after a change of its lane, by what holds it now.
    """

    prepared: Any
    lane: str
    arrived: float = 0.0
    deadline: float = inf
    call: Call | None = None
    model: ModelInfo | None = None
    span: Span = NO_SPAN
    request_id: str = ""
    result: Promise[JobResult] = field(default_factory=Promise)
    callers: Counter[str] = field(default_factory=Counter)
    running: bool = False
    prepared_s: float = 0.0
    waited_s: float = 0.0
    answered: float = 0.0
    batch_span: str = ""
    losses: int = 0
    on_move: "Callable[[Job], object] | None" = None

    def join(self, lane: str, deadline: float = -inf) -> None:
        """Add a caller."""
        self.callers[lane] += 1
        self.deadline = max(self.deadline, deadline)
        if lane == INTERACTIVE != self.lane:
            self.promote()

    def leave(self, lane: str) -> None:
        """Remove a caller.  Without interactive ones it is bulk work again, if it had bulk callers."""
        self.callers[lane] -= 1
        if BULK in self.callers and not self.callers[INTERACTIVE]:
            self._move(BULK)

    def promote(self) -> None:
        """Make it interactive, wherever it is."""
        self._move(INTERACTIVE)

    def _move(self, lane: str) -> None:
        if self.lane != lane:
            self.lane = lane
            if self.on_move is not None:
                self.on_move(self)

    def begin(self, now: float) -> None:
        """Note that its batch begins."""
        self.running, self.waited_s = True, now - self.arrived

    def refuse(self, reason: ScoregateError) -> None:
        """Set the error of a call that no batch has, also after one whose device was lost."""
        self.finish(JobResult(reason, self.waited_s, refused=True))

    def finish(self, result: JobResult) -> None:
        """Set the *result*, unless the callers have gone."""
        if not self.result.done():
            self.answered = monotonic()
            self.result.set_result(result)

    def has_gone(self, now: float) -> bool:
        """Return True if no batch may take it: its callers have gone or its deadline has passed."""
        return self.result.done() or self.deadline <= now

    def cancel(self) -> None:
        """Drop the remaining work."""
        self.result.cancel()
