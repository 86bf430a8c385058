"""Budgets: bounded amounts that callers share; they wait in turns, or are refused (`ByteBudget`)."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Container, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import Generic, NamedTuple, Self, TypeVar

from service.core.errors import MemoryFull
from service.core.retry_after import Shortage, expected_wait_s

T = TypeVar("T")

# A `ByteBudget` keeps a part of its bytes for small requests.
SMALL_BYTES = 2**20  # requests up to this size still fit after larger ones have used their part
LARGE_REQUESTS_SHARE = 7 / 8  # all larger requests together get this share


class Caller(NamedTuple):
    """
    The caller and the request for which a task and its children run.

    Attributes:
        who: the API key, or the request if it has none; callers take turns.
        request: requests of one caller take turns.
    """

    who: object = None
    request: object = None


CALLER: ContextVar[Caller] = ContextVar("caller", default=Caller())  # noqa: B039 (it never changes)


@contextmanager
def one_caller(who: object = None) -> Iterator[None]:
    """
    Run as a new request while the context is open.

    Args:
        who: the caller; None for an anonymous one, who is a caller of its own.
    """
    request = object()
    before = CALLER.set(Caller(request if who is None else who, request))
    try:
        yield
    finally:
        CALLER.reset(before)


class Turns(Generic[T]):
    """
    Entries of several callers: callers in turns, each one's requests in turns, each request's in order.

    Attributes:
        callers: those that have entries, in the order of their turns.
    """

    def __init__(self) -> None:
        self.callers: OrderedDict[object, OrderedDict[object, deque[T]]] = OrderedDict()

    def add(self, entry: T) -> None:
        """Append an entry of the current request."""
        who, request = CALLER.get()
        self.callers.setdefault(who, OrderedDict()).setdefault(request, deque()).append(entry)

    def first(self, last: Container[object] = ()) -> tuple[object, T]:
        """
        Return the next caller and entry without removing it.  Raises `StopIteration` if empty.

        Args:
            last: callers that come after all others.
        """
        who = next((who for who in self.callers if who not in last), next(iter(self.callers)))
        return who, next(iter(self.callers[who].values()))[0]

    def in_order(self, last: Container[object] = ()) -> Iterator[T]:
        """Yield all entries: first those of the next caller, in the order of its requests."""
        for served in (False, True):
            for who, requests in self.callers.items():
                if (who in last) is served:
                    for queue in requests.values():
                        yield from queue

    def take(self, last: Container[object] = ()) -> tuple[object, T]:
        """Remove and return the next caller and entry; the turn of caller and request is over."""
        who, entry = self.first(last)
        self.remove(Caller(who, next(iter(self.callers[who]))), entry)
        return who, entry

    def remove(self, caller: Caller, entry: T, *, served: bool = True) -> None:
        """Remove an entry; if it was *served*, move caller and request to the end of their queues."""
        who, request = caller
        requests = self.callers[who]
        queue = requests[request]
        queue.remove(entry)
        if served:
            requests.move_to_end(request)
            self.callers.move_to_end(who)
        if not queue:
            del requests[request]
        if not requests:
            del self.callers[who]


class Budget:
    """
    A semaphore for amounts: urgent callers first, then all callers in turns.

    Callers that hold nothing come before those that hold a portion, so that a caller with many large
    images takes spare capacity only.  An amount that does not fit yet is not passed by later ones, except
    where its caller or its key already holds its maximum.

    Args:
        total: the amount.
        for_urgent: the part of it that only urgent callers may take.
        per_caller, per_key: the maximum that one caller holds, and that is held for one key, such as a host.
    """

    def __init__(
        self, total: int, for_urgent: int = 0, *, per_caller: float = inf, per_key: float = inf
    ) -> None:
        self._total, self._for_patient = total, total - for_urgent
        self._per_caller, self._per_key = per_caller, per_key
        self._held = self._held_by_patient = 0
        self._holders: Counter[object] = Counter()
        self._keys: Counter[Hashable] = Counter()
        self._urgent: Turns[Waiter] = Turns()
        self._patient: Turns[Waiter] = Turns()

    @property
    def held(self) -> int:
        """The amount that is taken."""
        return self._held

    @property
    def waits(self) -> bool:
        """True if a caller waits for an amount."""
        return bool(self._urgent.callers or self._patient.callers)

    @asynccontextmanager
    async def hold(self, amount: int, urgent: bool = True, key: Hashable = None) -> AsyncIterator[None]:
        """Take *amount* while the context is open.  It must not exceed what the caller may take."""
        portion = await self.take(amount, urgent, key)
        try:
            yield
        finally:
            portion.give_back(amount)

    async def take(self, amount: int, urgent: bool = True, key: Hashable = None) -> "Portion":
        """Wait for *amount*, which must not exceed what the caller may take."""
        if now := self.take_now(amount, urgent, key):
            return now
        portion = Portion(self, CALLER.get(), urgent, key)
        waiter = Waiter(portion, amount, asyncio.get_running_loop().create_future())
        waiting = self._urgent if urgent else self._patient
        waiting.add(waiter)
        self._serve()
        try:
            await waiter.turn
        except BaseException:
            if waiter.turn.done() and not waiter.turn.cancelled():  # it was served before it left
                self._change(portion, -amount)
            else:
                waiting.remove(portion.caller, waiter, served=False)
            self._serve()
            raise
        return portion

    def take_now(self, amount: int, urgent: bool = True, key: Hashable = None) -> "Portion | None":
        """Take *amount* if it is free and no earlier caller waits; return None otherwise."""
        portion = Portion(self, CALLER.get(), urgent, key)
        if self._urgent.callers or (self._patient.callers and not urgent):
            return None
        if not (self._allows(portion, amount) and self._fits(portion, amount)):
            return None
        self._change(portion, amount)
        return portion

    def _allows(self, portion: "Portion", amount: int) -> bool:
        """Return True if the portion's caller and key may hold so much more."""
        return (
            self._holders[portion.caller.who] + amount <= self._per_caller
            and self._keys[portion.key] + amount <= self._per_key
        )

    def _fits(self, portion: "Portion", amount: int) -> bool:
        """Return True if *amount* is free."""
        patient = 0 if portion.urgent else self._held_by_patient + amount
        return self._held + amount <= self._total and patient <= self._for_patient

    def _change(self, portion: "Portion", amount: int) -> None:
        """Add *amount*, which may be negative, to what is held."""
        self._held += amount
        if not portion.urgent:
            self._held_by_patient += amount
        held: tuple[tuple[Counter[object], object], ...] = (
            (self._holders, portion.caller.who),
            (self._keys, portion.key),
        )
        for counter, holder in held:
            counter[holder] += amount
            if not counter[holder]:
                del counter[holder]

    def _serve(self) -> None:
        """Resume the waiting callers for whom there is enough."""
        while waiter := self._next():
            portion = waiter.portion
            (self._urgent if portion.urgent else self._patient).remove(portion.caller, waiter)
            self._change(portion, waiter.amount)
            waiter.turn.set_result(None)

    def _next(self) -> "Waiter | None":
        """Return the next waiter if there is enough for it; one whose turn is done has left already."""
        for waiter in chain(self._urgent.in_order(self._holders), self._patient.in_order(self._holders)):
            if not waiter.turn.done() and self._allows(waiter.portion, waiter.amount):
                return waiter if self._fits(waiter.portion, waiter.amount) else None
        return None


@dataclass(frozen=True, eq=False, slots=True)
class Portion:
    """The part of a budget that a caller holds for a key."""

    budget: Budget
    caller: Caller
    urgent: bool
    key: Hashable

    def give_back(self, amount: int) -> None:
        """Return *amount* of it to the budget, which serves those who wait."""
        self.budget._change(self, -amount)
        if self.budget.waits:
            self.budget._serve()


@dataclass(frozen=True, eq=False, slots=True)
class Waiter:
    """An amount that is waited for; *turn* is done when it is held."""

    portion: Portion
    amount: int
    turn: "asyncio.Future[None]"


class ByteBudget:
    """
    A bound on the bytes of all requests and downloads together.

    Nothing waits here: bytes that do not fit are refused, so holders of memory cannot deadlock.

    Args:
        total: bytes.
    """

    def __init__(self, total: int) -> None:
        self.total, self.held = total, 0


@dataclass(eq=False, slots=True)
class Share:
    """
    The bytes that one request or download has of a budget, none at first; on exit all are given back.

    Attributes:
        size: bytes.
    """

    _budget: ByteBudget
    size: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.shrink(self.size)

    def grow(self, size: int) -> None:
        """Hold *size* bytes more.  Raises `MemoryFull` if they do not fit; then nothing changes."""
        budget = self._budget
        most = budget.total if self.size + size <= SMALL_BYTES else LARGE_REQUESTS_SHARE * budget.total
        if size and budget.held + size > most:  # no bytes more always fit: a body ends with an empty message
            raise MemoryFull(
                f"requests hold as many bytes as they may together ({budget.total >> 20} MiB)",
                retry_after_s=expected_wait_s(Shortage.BYTES),
            )
        self.size += size
        budget.held += size

    def shrink(self, size: int) -> None:
        """Give *size* bytes back."""
        self.size -= size
        self._budget.held -= size
