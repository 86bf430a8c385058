"""What every outcome is."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import orjson


class CallResult(ABC):
    """
    What a model says of one call.

    Attributes:
        kind: the name under which stored outcomes of this class are found again.
    """

    __slots__ = ()

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type["CallResult"]]] = {}

    def __init_subclass__(cls) -> None:
        """Make the kind known to `loads`."""
        CallResult._kinds[cls.kind] = cls

    @abstractmethod
    def is_finite(self) -> bool:
        """Whether all its numbers are."""

    def is_possible(self) -> bool:
        """Whether all its numbers are finite and within the range of their kind: no other one is read."""
        return self.is_finite()

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """All of it as values that JSON has."""

    @classmethod
    @abstractmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        """What `to_json` wrote.  Raises `KeyError`, `TypeError` or `ValueError` for anything else."""

    def dumps(self) -> bytes:
        """As stores keep it: JSON, floats in as many digits as tell them apart."""
        return orjson.dumps({"kind": self.kind, **self.to_json()})

    @staticmethod
    def loads(value: bytes) -> "CallResult | None":
        """What `dumps` wrote; None where the bytes are something else, a part of it, or not possible."""
        try:
            written = orjson.loads(value)
            outcome = CallResult._kinds[written.pop("kind")].from_json(written)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
        return outcome if outcome.is_possible() else None
