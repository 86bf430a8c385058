"""A handle: how a metric calls one model."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from time import monotonic
from typing import Any

from models.core.calls import Call
from models.core.contract import ModelInfo
from service.core.concurrency.promise import all_done
from service.core.errors import Replaced
from service.observability.tracing.span import Span
from service.serving.cache.memory import Cache
from service.serving.context import Context
from service.serving.contract import Backend
from service.serving.demand import Demand
from service.serving.shared_call import SharedCall, SharedCalls, stage


class Handle:
    """
    One configured model, with its cache and its unfinished calls.

    Args:
        cache: stores its outcomes; not used for a model without a revision.
        call_later: the event loop's by default.
    """

    def __init__(
        self,
        backend: Backend,
        cache: Cache | None,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self.name, self.backend = backend.name, backend
        self._cache = cache
        self._calls = SharedCalls(backend, call_later)

    @property
    def info(self) -> ModelInfo:
        """The model that is loaded or served now."""
        return self.backend.info

    @property
    def under_way(self) -> int:
        """Number of calls that were begun and have no outcome yet."""
        return len(self._calls)

    def admit(self, context: Context, demand: Demand) -> None:
        """Reject a request before any work.  Raises `LaneFull`, `Overloaded` or `TooLarge`."""
        self.backend.admit(context.lane, context.deadline, demand)

    def used_by(self, context: Context) -> AbstractContextManager[None]:
        """Keep the model for a request until the context closes, before it goes."""
        return self.backend.presence.used_by(context.request)

    async def idle(self) -> None:
        """Return when no call is under way, and the requests that are finished first have ended."""
        await self.backend.presence.unused()
        await self._calls.idle()

    async def aclose(self) -> None:
        """Return when all prepared calls have been handed to the backend, which answers them."""
        await self._calls.aclose()

    async def call(self, calls: Sequence[Call], context: Context) -> list[Any]:
        """
        Return one outcome per call, in order.

        A `ScoregateError` is returned as an outcome, so one failed call never cancels the others.  If
        *context* is promoted, so are all of its calls.  If another model replaces this one meanwhile, all
        calls are sent to the new one.

        Raises:
            NotReady: the model has been taken away, and its calls do not wait.
        """
        while True:
            await self.backend.presence.wait(context.request)
            outcomes = await self._call(calls, context)
            if not any(isinstance(outcome, Replaced) for outcome in outcomes):
                return outcomes

    async def _call(self, calls: Sequence[Call], context: Context) -> list[Any]:
        model = self.info
        cache = self._cache if model.revision else None
        # With the name: two configured models may have one id and revision.
        keys = [call.key((self.name, *model.identity)) for call in calls]
        outcomes: list[Any] = [None] * len(keys)
        if cache is not None and any(call.cacheable for call in calls):
            context.stage = stage([])
            outcomes = list(await cache.find(keys))
        missing = [index for index, outcome in enumerate(outcomes) if outcome is None]
        wanted = [(keys[index], calls[index]) for index in missing]
        joined, new = self._calls.join(wanted, model, cache, context)
        shared = dict(zip(missing, joined, strict=True))
        for index, call in enumerate(calls):
            status = "hit" if index not in shared else "miss" if shared[index] in new else "coalesced"
            if call.cacheable and (status != "miss" or cache is not None):
                context.looked_up("scores", status)
        await self._wait(joined, context)
        for index, joined_call in shared.items():
            outcomes[index] = joined_call.result.result().outcome
        context.unknown += filter(None, (getattr(outcome, "unknown", 0.0) for outcome in outcomes))
        return outcomes

    async def _wait(self, shared: Sequence[SharedCall], context: Context) -> None:
        """Wait for the results of *shared* as one caller, and record their timings."""
        since = monotonic()

        def promote() -> None:
            for call in shared:
                call.promote()

        try:
            if shared:
                with context.promoting(promote):
                    await all_done([call.result for call in shared])
        except asyncio.CancelledError:
            context.stage = stage(shared)
            raise
        finally:
            for call in shared:
                self._calls.leave(call)
        for call in shared:
            result = call.result.result()
            if result.decoded_s:  # in a replica
                context.spent("decode", result.decoded_s)
            context.spent("prepare", call.prepared_s + result.prepared_s)
            context.spent("queue", result.waited_s)
            context.spent("model", result.ran_s)
        if context.span.recording:
            add_spans(context.span, self.name, shared, since)


@contextmanager
def used(handles: Iterable[Handle], context: Context) -> Iterator[None]:
    """Keep several models for a request, see `Handle.used_by`."""
    with ExitStack() as stack:
        for handle in handles:
            stack.enter_context(handle.used_by(context))
        yield


def add_spans(span: Span, model: str, calls: Sequence[SharedCall], since: float) -> None:
    """
    Add to *span* how long *calls* waited and ran: a pair of spans for each batch that they were in.

    A call that another request began is shown from *since*, by `time.monotonic`.
    """
    batches: dict[str | bytes, list[SharedCall]] = defaultdict(list)
    for call in calls:
        if call.result.result().ran_s:  # a batch took it
            batches[call.result.result().batch or call.key].append(call)
    for batch, served in batches.items():
        results = [call.result.result() for call in served]
        ended = max(call.answered for call in served)
        began = ended - max(result.ran_s for result in results)
        queued = began - max(result.waited_s for result in results)
        span.add("queue", max(since, queued), max(since, began), model=model, calls=len(served))
        links = [batch] if isinstance(batch, str) else []
        span.add("model", max(since, began), ended, links, model=model, calls=len(served))
