"""Attributes that are computed at their first use."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazily(Generic[T]):
    """
    `functools.cached_property` without its lock, which all objects of a class share in Python 3.11.

    The lock would block the event loop while a thread reads another picture.  Without it, two threads may
    compute the attribute simultaneously.
    """

    def __init__(self, find: Callable[[Any], T]) -> None:
        self._find = find

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, of: Any, kind: type | None = None) -> T:
        found: T = self._find(of)
        vars(of)[self._name] = found
        return found
