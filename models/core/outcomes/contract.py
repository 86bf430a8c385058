"""The base class of all results."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import orjson

from models.core.contract import NOT_FINITE, ModelError


class CallResult(ABC):
    """
    The result of one call.

    Attributes:
        kind: name of the class in stored results.
    """

    __slots__ = ()

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type["CallResult"]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the kind for `loads`; a base class of several kinds has none."""
        if hasattr(cls, "kind"):
            CallResult._kinds[cls.kind] = cls

    @abstractmethod
    def is_finite(self) -> bool:
        """Return True if all numbers are finite."""

    def is_possible(self) -> bool:
        """Return True if all numbers are finite and within the range of their kind."""
        return self.is_finite()

    def checked(self) -> Self | ModelError:
        """Return the result itself, or a `ModelError` if one of its numbers is not finite."""
        return self if self.is_finite() else ModelError(NOT_FINITE)

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON values."""

    @classmethod
    @abstractmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        """Build a result from the values of `to_json`.  Raises `KeyError`, `TypeError` or `ValueError`."""

    def dumps(self) -> bytes:
        """Encode the result as JSON for a store, without rounding."""
        return orjson.dumps({"kind": self.kind, **self.to_json()})

    @staticmethod
    def loads(value: bytes) -> "CallResult | None":
        """Decode a result of `dumps`; None if the bytes are incomplete, or not those of a possible result."""
        try:
            written = orjson.loads(value)
            outcome = CallResult._kinds[written.pop("kind")].from_json(written)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
        return outcome if outcome.is_possible() else None
