"""Whose turn it is among requests that wait for the same thing."""

from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

T = TypeVar("T")

# What runs on behalf of one request, the tasks that it starts among them, waits as one caller.
CALLER: ContextVar[object] = ContextVar("caller", default=None)


@contextmanager
def one_caller() -> Iterator[None]:
    """Whatever waits for its turn while this is open takes turns with others as one."""
    before = CALLER.set(object())
    try:
        yield
    finally:
        CALLER.reset(before)


class Turns(Generic[T]):
    """Entries of several callers: each caller's first come, first served, and the callers in turns."""

    def __init__(self) -> None:
        self._queues: OrderedDict[object, deque[T]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, entry: T) -> None:
        """Behind the other entries of the caller who runs this."""
        self._queues.setdefault(CALLER.get(), deque()).append(entry)

    def first(self) -> T:
        """The entry whose turn it is; it stays.  Raises `StopIteration` where there is none."""
        return next(iter(self._queues.values()))[0]

    def take(self) -> T:
        """The entry whose turn it is; its caller goes behind the others."""
        caller, queue = next(iter(self._queues.items()))
        entry = queue.popleft()
        self._queues.move_to_end(caller)
        if not queue:
            del self._queues[caller]
        return entry
