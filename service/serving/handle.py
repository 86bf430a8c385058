"""A handle: how a metric asks one model."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from service.context import Context
from service.errors import Draining, ScoregateError
from service.serving.backend import Backend
from service.serving.batching import Ticket
from service.serving.cache import Cache, is_kept, key_of
from service.telemetry import BULK, INTERACTIVE

BULK_KEPT_S = 10.0  # how long a bulk call whose caller has left is kept for one who asks the same


class Flight:
    """
    One call under way, for all who ask it at the same time.

    Attributes:
        outcome: theirs.
        work: the backend's, once it has begun.
        launch: what prepares it together with the rest of its *group*.
        waiting: how many they are.
    """

    launch: asyncio.Task[None]
    group: Sequence["Flight"]

    def __init__(self, key: bytes, call: Any, context: Context) -> None:
        self.key, self.call = key, call
        self.ticket = Ticket(context.lane, context.deadline)
        self.outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.work: asyncio.Future[Any] | None = None
        self.waiting = 0

    def land(self, outcome: Any) -> None:
        """Give everyone the outcome."""
        if not self.outcome.done():
            self.outcome.set_result(outcome)


class Handle:
    """
    One configured model: answered before? under way already? else its backend is asked.

    Equal calls share one flight.  It belongs to none of its callers: when the first one leaves, it goes
    on for the others; its lane is the most urgent of theirs, and each of them keeps a deadline of his
    own.  When all have left, interactive work is dropped at once, and bulk work is kept some seconds,
    since trainers send the same body again after a timeout and should not start again at the back.
    """

    def __init__(
        self,
        backend: Backend,
        cache: Cache | None,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self.name, self.info = backend.name, backend.info
        self._backend, self._cache = backend, cache if backend.info.revision else None
        # The name tells apart models that an operator gave one id and revision.
        self._model = (backend.name, backend.info.label, backend.info.dtype)
        self._call_later = call_later
        self._flights: dict[bytes, Flight] = {}
        self._launches: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def under_way(self) -> int:
        """Calls that were begun and have no outcome yet."""
        return len(self._flights)

    @property
    def missing(self) -> str:
        """Why the model can't be asked now; empty where it can."""
        return self._backend.missing

    def admit(self, context: Context) -> None:
        """Raises `LaneFull` or `Overloaded` where a request should be refused before any work."""
        self._admit(context.lane, context.deadline)

    def _admit(self, lane: str, deadline: float) -> None:
        self._backend.admit(lane, deadline - asyncio.get_running_loop().time())

    async def aclose(self) -> None:
        """Begin nothing new, and let what is being prepared be answered by the backend."""
        self._closed = True
        await asyncio.gather(*self._launches, return_exceptions=True)

    async def ask(self, calls: Sequence[Any], context: Context) -> list[Any]:
        """
        Ask a group at once: one outcome per call, in order.

        An exception is an outcome (always a `ScoregateError`), so one failed call never cancels its
        siblings.
        """
        keys = [key_of(self._model, call) for call in calls]
        kept = await self._find(keys, calls, context)
        fresh: list[Flight] = []
        flights: list[Flight | None] = [
            None if found is not None else self._join(key, call, context, fresh)
            for key, call, found in zip(keys, calls, kept, strict=True)
        ]
        self._note(calls, flights, fresh, context)
        if fresh:
            self._launch(fresh, context)
        joined = [flight for flight in flights if flight]
        try:
            # One wait for all: a group of outcomes, not an exception of the first.
            if joined:
                await asyncio.wait([flight.outcome for flight in joined])
        except asyncio.CancelledError:
            context.stage = stage(joined)
            raise
        finally:
            for flight in joined:
                self._leave(flight)
        for flight in joined:
            context.spent("queue", flight.ticket.waited)
            context.spent("model", flight.ticket.ran)
        return [
            flight.outcome.result() if flight else found for flight, found in zip(flights, kept, strict=True)
        ]

    async def _find(self, keys: Sequence[bytes], calls: Sequence[Any], context: Context) -> list[Any]:
        if self._cache is None or not any(map(is_kept, calls)):
            return [None] * len(keys)
        context.stage = stage([])
        return await self._cache.find(keys)

    def _note(
        self,
        calls: Sequence[Any],
        flights: Sequence[Flight | None],
        fresh: Sequence[Flight],
        context: Context,
    ) -> None:
        """What came of looking for each call's outcome; without a cache there is nothing to miss."""
        new = {id(flight) for flight in fresh}
        for call, flight in zip(calls, flights, strict=True):
            way = "hit" if flight is None else "miss" if id(flight) in new else "coalesced"
            if is_kept(call) and (way != "miss" or self._cache is not None):
                context.looked_up("scores", way)

    def _join(self, key: bytes, call: Any, context: Context, fresh: list[Flight]) -> Flight:
        """The call's flight, which is among *fresh* where it has yet to begin."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = Flight(key, call, context)
            fresh.append(flight)
        elif context.lane == INTERACTIVE:
            self._lift(flight)
        flight.ticket.deadline = max(flight.ticket.deadline, context.deadline)
        flight.waiting += 1
        return flight

    def lift(self, call: Any) -> None:
        """Somebody urgent waits for *call*, without asking it himself; if it is under way, it hurries."""
        if flight := self._flights.get(key_of(self._model, call)):
            self._lift(flight)

    def _lift(self, flight: Flight) -> None:
        if flight.ticket.lane == BULK:
            flight.ticket.lane = INTERACTIVE
            if flight.work is not None:
                self._backend.lift(flight.work)

    def _leave(self, flight: Flight) -> None:
        flight.waiting -= 1
        if flight.waiting or flight.outcome.done():
            return
        if flight.ticket.lane == BULK and not self._closed:
            later = self._call_later or asyncio.get_running_loop().call_later
            flight.ticket.deadline += BULK_KEPT_S
            later(BULK_KEPT_S, lambda: self._drop(flight))
        else:
            self._drop(flight)

    def _drop(self, flight: Flight) -> None:
        """Give up a flight that nobody waits for."""
        if flight.waiting or flight.outcome.done():
            return
        flight.outcome.cancel()
        if flight.work is not None:
            flight.work.cancel()
        elif all(sibling.outcome.done() for sibling in flight.group):
            flight.launch.cancel()
        self._forget(flight)

    def _forget(self, flight: Flight) -> None:
        if self._flights.get(flight.key) is flight:
            del self._flights[flight.key]

    def _launch(self, flights: list[Flight], context: Context) -> None:
        task = asyncio.create_task(self._begin(flights, context))
        self._launches.add(task)
        task.add_done_callback(self._launches.discard)
        for flight in flights:
            flight.launch, flight.group = task, flights

    async def _begin(self, flights: list[Flight], context: Context) -> None:
        """Prepare a group together and put it before the device at once, so that it shares batches."""
        prepared = await self._backend.prepare([flight.call for flight in flights], context.lane)
        for flight, made in zip(flights, prepared, strict=True):
            if flight.outcome.done():  # everyone has left in the meantime
                continue
            try:
                if isinstance(made, ScoregateError):
                    raise made
                # Once more: others may have come before it while it was prepared.
                self._admit(flight.ticket.lane, flight.ticket.deadline)
                flight.work = self._backend.start(made, flight.ticket, context)
            except ScoregateError as refusal:
                self._forget(flight)
                flight.land(refusal)
            else:
                flight.work.add_done_callback(partial(self._land, flight))

    def _land(self, flight: Flight, work: asyncio.Future[Any]) -> None:
        self._forget(flight)
        if work.cancelled():
            flight.land(Draining())
            return
        outcome = work.result()
        if self._cache is not None and is_kept(flight.call) and not isinstance(outcome, Exception):
            self._cache.keep(flight.key, outcome)
        flight.land(outcome)


def stage(flights: Sequence[Flight]) -> str:
    """How far a group has come."""
    if any(flight.ticket.begun for flight in flights):
        return "model"
    return "queue" if any(flight.work for flight in flights) else "decode"
