"""Whose turn it is among requests that wait for the same thing."""

from collections import OrderedDict, deque
from collections.abc import Container, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Caller(NamedTuple):
    """
    On whose behalf something runs, the tasks that it starts among them.

    Attributes:
        who: takes turns with others: a key, or a request without one.
        request: takes turns with the other requests of the same caller.
    """

    who: object = None
    request: object = None


CALLER: ContextVar[Caller] = ContextVar("caller", default=Caller())  # noqa: B039 (it never changes)


@contextmanager
def one_caller(who: object = None) -> Iterator[None]:
    """
    Whatever waits for its turn while this is open takes turns with others as one request.

    Args:
        who: sent the request; None for somebody of whom nothing is known, who stands for himself.
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
        """Behind the other entries of the request that runs this."""
        who, request = CALLER.get()
        self._callers.setdefault(who, OrderedDict()).setdefault(request, deque()).append(entry)

    def first(self, last: Container[object] = ()) -> tuple[object, T]:
        """
        Whose turn it is, and the entry; it stays.  Raises `StopIteration` where there is none.

        Args:
            last: callers whose turn it is only where no others wait.
        """
        who = next((who for who in self._callers if who not in last), next(iter(self._callers)))
        return who, next(iter(self._callers[who].values()))[0]

    def take(self, last: Container[object] = ()) -> tuple[object, T]:
        """The same; the caller goes behind the others, and the request behind those of the caller."""
        who, entry = self.first(last)
        requests = self._callers[who]
        request, queue = next(iter(requests.items()))
        queue.popleft()
        requests.move_to_end(request)
        self._callers.move_to_end(who)
        if not queue:
            del requests[request]
        if not requests:
            del self._callers[who]
        return who, entry
