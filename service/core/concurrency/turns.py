"""Turns: fair queues of callers and their requests."""

from collections import OrderedDict, deque
from collections.abc import Container, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


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
    """Entries of several callers: callers in turns, each one's requests in turns, each request's in order."""

    def __init__(self) -> None:
        self._callers: OrderedDict[object, OrderedDict[object, deque[T]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._callers)

    def add(self, entry: T) -> None:
        """Append an entry of the current request."""
        who, request = CALLER.get()
        self._callers.setdefault(who, OrderedDict()).setdefault(request, deque()).append(entry)

    def first(self, last: Container[object] = ()) -> tuple[object, T]:
        """
        Return the next caller and entry without removing it.  Raises `StopIteration` if empty.

        Args:
            last: callers that come after all others.
        """
        who = next((who for who in self._callers if who not in last), next(iter(self._callers)))
        return who, next(iter(self._callers[who].values()))[0]

    def in_order(self, last: Container[object] = ()) -> Iterator[T]:
        """Yield all entries: first those of the next caller, in the order of its requests."""
        callers = [who for who in self._callers if who not in last]
        callers += [who for who in self._callers if who in last]
        return (entry for who in callers for queue in self._callers[who].values() for entry in queue)

    def take(self, last: Container[object] = ()) -> tuple[object, T]:
        """Remove and return the next caller and entry; the turn of caller and request is over."""
        who, entry = self.first(last)
        self.remove(Caller(who, next(iter(self._callers[who]))), entry)
        return who, entry

    def remove(self, caller: Caller, entry: T, *, served: bool = True) -> None:
        """Remove an entry; if it was *served*, move caller and request to the end of their queues."""
        who, request = caller
        requests = self._callers[who]
        queue = requests[request]
        queue.remove(entry)
        if served:
            requests.move_to_end(request)
            self._callers.move_to_end(who)
        if not queue:
            del requests[request]
        if not requests:
            del self._callers[who]
