"""A handle: how a metric asks one model."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any

from models.core.calls import Call
from models.core.contract import ModelInfo, Prepared
from models.core.outcomes import CallResult
from service.core.concurrency.promise import Promise, all_done
from service.core.concurrency.tasks import Tasks
from service.core.errors import Draining, ModelFault, Replaced, ScoregateError
from service.core.lanes import BULK, INTERACTIVE
from service.serving.cache.contract import Cache
from service.serving.call_spans import add_spans
from service.serving.context import Context
from service.serving.contract import Backend, Result, StartedCall, WorkEstimate
from service.serving.demand import Demand
from service.serving.reservation import Reservation
from service.serving.shared_call import SharedCall, stage

log = logging.getLogger("scoregate.models")

BULK_KEPT_S = 10.0  # how long a bulk call whose caller has left is kept for one who asks the same


class Handle:
    """
    One configured model: answered before? under way already? else its backend is asked.

    Equal calls share one `SharedCall`.  It belongs to none of its callers: its lane is the most urgent of
    theirs, and each of them keeps a deadline of its own.  When all have left, interactive work is dropped
    at once, and bulk work is kept some seconds, since trainers send the same body again after a timeout
    and should not start again at the back.

    Args:
        cache: where its outcomes are kept, if anywhere; not used for a model without a revision.
        call_later: the event loop's, unless a test brings its own.
    """

    def __init__(
        self,
        backend: Backend,
        cache: Cache | None,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self.name = backend.name
        self._backend, self._kept = backend, cache
        self._call_later = call_later
        self._shared: dict[bytes, SharedCall] = {}
        self._preparing = Tasks()
        self._closed = False

    @property
    def info(self) -> ModelInfo:
        """What is loaded or served now."""
        return self._backend.info

    @property
    def replacements(self) -> int:
        """How many times the model has been replaced by another one."""
        return self._backend.replacements

    def _cache(self, model: ModelInfo) -> Cache | None:
        """Where outcomes of *model* are kept, if anywhere."""
        return self._kept if model.revision else None

    @property
    def under_way(self) -> int:
        """Calls that were begun and have no outcome yet."""
        return len(self._shared)

    @property
    def missing(self) -> str:
        """Why the model cannot be asked now; empty where it can."""
        return self._backend.missing

    @property
    def failing(self) -> str:
        """Why calls of the model fail lately, though they are tried; empty where they work."""
        return self._backend.failing

    @property
    def refuses(self) -> Mapping[str, str]:
        """Purposes that the model is of no use for, each with the reason."""
        return self._backend.refuses

    async def require(self, purpose: str, calls: Sequence[Call]) -> None:
        """Learn whether the model takes any of *calls*; one that takes none is of no use for *purpose*."""
        await self._backend.require(purpose, calls)

    def admit(self, context: Context, demand: Demand) -> None:
        """Raises `LaneFull`, `Overloaded` or `TooLarge` where a request should be refused before any work."""
        self._admit(context.lane, context.deadline, demand)

    def _admit(self, lane: str, deadline: float, demand: Demand | None = None) -> None:
        self._backend.admit(lane, deadline - asyncio.get_running_loop().time(), demand)

    def reserve(self, lane: str, demand: Demand, parts: int) -> Reservation:
        """Count what was admitted against *lane*, until its *parts* have begun one by one."""
        return self._backend.reserve(lane, demand, parts)

    def extent(self, demand: Demand) -> WorkEstimate:
        """What *demand* comes to."""
        return self._backend.extent(demand)

    async def aclose(self) -> None:
        """Begin nothing new, and let what is being prepared be answered by the backend."""
        self._closed = True
        await self._preparing.wait()

    async def ask(self, calls: Sequence[Call], context: Context) -> list[Any]:
        """
        Ask a group at once: one outcome per call, in order.

        An exception is an outcome (always a `ScoregateError`), so one failed call never cancels its
        siblings.  If *context* is promoted meanwhile, so is every call that it waits for.  Where the model
        was replaced meanwhile, all of them are asked of the new one.
        """
        while True:
            outcomes = await self._ask(calls, context)
            if not any(isinstance(outcome, Replaced) for outcome in outcomes):
                return outcomes

    async def _ask(self, calls: Sequence[Call], context: Context) -> list[Any]:
        model = self.info
        # The name tells apart models that an operator gave one id and revision.
        keys = [call.key((self.name, *model.identity)) for call in calls]
        cache = self._cache(model)
        found = await self._find(cache, keys, calls, context)
        fresh: list[SharedCall] = []
        shared = [
            None if outcome is not None else self._join(key, call, model, context, fresh)
            for key, call, outcome in zip(keys, calls, found, strict=True)
        ]
        self._count_lookups(cache, calls, shared, fresh, context)
        if fresh:
            self._start(fresh, context)
        await self._wait([call for call in shared if call is not None], context)
        return [
            outcome if call is None else call.result.result().outcome
            for call, outcome in zip(shared, found, strict=True)
        ]

    async def _find(
        self, cache: Cache | None, keys: Sequence[bytes], calls: Sequence[Call], context: Context
    ) -> list[Any]:
        """The outcome of each call that was answered before, else None."""
        if cache is None or not any(call.cacheable for call in calls):
            return [None] * len(keys)
        context.stage = stage([])
        return await cache.find(keys)

    def _count_lookups(
        self,
        cache: Cache | None,
        calls: Sequence[Call],
        shared: Sequence[SharedCall | None],
        fresh: Sequence[SharedCall],
        context: Context,
    ) -> None:
        """Note what came of looking for each call's outcome; without a cache there is nothing to miss."""
        new = {id(call) for call in fresh}
        for call, under_way in zip(calls, shared, strict=True):
            way = "hit" if under_way is None else "miss" if id(under_way) in new else "coalesced"
            if call.cacheable and (way != "miss" or cache is not None):
                context.looked_up("scores", way)

    async def _wait(self, shared: Sequence[SharedCall], context: Context) -> None:
        """Wait for the results of *shared* on behalf of one caller, and note the time they took."""
        asked = monotonic()

        def promote() -> None:
            for call in shared:
                call.promote()

        try:
            if shared:  # one wait for all: a group of results, not an exception of the first
                with context.promoting(promote):
                    await all_done([call.result for call in shared])
        except asyncio.CancelledError:
            context.stage = stage(shared)
            raise
        finally:
            for call in shared:
                self._leave(call)
        for call in shared:
            result = call.result.result()
            context.spent("queue", result.waited_s)
            context.spent("model", result.ran_s)
        if context.span.recording:
            add_spans(context.span, self.name, shared, asked)

    # --- callers come and go ----------------------------------------------------------------------

    def _join(
        self, key: bytes, call: Call, model: ModelInfo, context: Context, fresh: list[SharedCall]
    ) -> SharedCall:
        """The shared call, which is added to *fresh* where it has yet to be prepared."""
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = SharedCall(key, call, model, context.lane, context.deadline)
            fresh.append(shared)
        else:
            if context.lane == INTERACTIVE:
                shared.promote()
            shared.extend(context.deadline)
        shared.callers += 1
        return shared

    def _leave(self, shared: SharedCall) -> None:
        shared.callers -= 1
        if shared.callers or shared.result.done():
            return
        if shared.lane == BULK and not self._closed:
            later = self._call_later or asyncio.get_running_loop().call_later
            shared.extend(shared.deadline + BULK_KEPT_S)
            later(BULK_KEPT_S, partial(self._drop, shared))
        else:
            self._drop(shared)

    def _drop(self, shared: SharedCall) -> None:
        """Give up a call, unless somebody waits for it again or it has been answered."""
        if not shared.callers and not shared.result.done():
            shared.give_up()
            self._forget(shared)

    def _forget(self, shared: SharedCall) -> None:
        if self._shared.get(shared.key) is shared:
            del self._shared[shared.key]

    # --- the work ---------------------------------------------------------------------------------

    def _start(self, group: list[SharedCall], context: Context) -> None:
        task = self._preparing.start(self._prepare_and_start(group, context))
        for shared in group:
            shared.preparing, shared.group = task, group

    async def _prepare_and_start(self, group: list[SharedCall], context: Context) -> None:
        """
        Prepare a group together and put it before the device at once, so that it shares batches.

        Whatever happens, each call of the group has been started or answered afterwards.
        """
        fault: ScoregateError = Draining()  # where the task was cancelled: the event loop ends
        try:
            prepared = await self._backend.prepare([shared.call for shared in group], context.lane)
            self._start_each(group, prepared, context)
        except Exception as exc:
            fault = ModelFault(f"the model {self.name} failed to prepare this call")
            log.error("group not prepared", extra={"model": self.name}, exc_info=exc)
        finally:
            for shared in group:
                if shared.started is None:
                    self._refuse(shared, fault)
                shared.group = ()  # a call that names its group keeps all of it until a garbage collection

    def _start_each(
        self, group: Sequence[SharedCall], prepared: Sequence[Prepared | ScoregateError], context: Context
    ) -> None:
        admitted: set[tuple[str, float]] = set()  # once more: others may have come before them meanwhile
        for shared, made in zip(group, prepared, strict=True):
            if shared.result.done():  # everyone has left in the meantime
                continue
            try:
                shared.started = self._start_one(shared, made, context, admitted)
            except ScoregateError as refusal:
                self._refuse(shared, refusal)
            else:
                shared.started.result.add_done_callback(partial(self._finish, shared))

    def _start_one(
        self,
        shared: SharedCall,
        prepared: Prepared | ScoregateError,
        context: Context,
        admitted: set[tuple[str, float]],
    ) -> StartedCall:
        """Raises `ScoregateError` where the call cannot be prepared or is refused, or its model is gone."""
        if shared.model.identity != self.info.identity:
            raise Replaced
        if isinstance(prepared, ScoregateError):
            raise prepared
        if (urgency := (shared.lane, shared.deadline)) not in admitted:
            self._admit(*urgency)
            admitted.add(urgency)
        return self._backend.start(prepared, shared.lane, shared.deadline, context)

    def _refuse(self, shared: SharedCall, error: ScoregateError) -> None:
        """Answer a call that is not started, unless it has been given up."""
        self._forget(shared)
        shared.answer(Result(error))

    def _finish(self, shared: SharedCall, finished: Promise[Result]) -> None:
        """Hand the outcome to everyone who waits, and keep it."""
        self._forget(shared)
        if finished.cancelled():
            shared.answer(Result(Draining()))
            return
        result = finished.result()
        shared.answer(result)  # first: nobody waits for a cache
        cache = self._cache(shared.model)
        if cache is not None and shared.call.cacheable and isinstance(result.outcome, CallResult):
            cache.keep(shared.key, result.outcome)
