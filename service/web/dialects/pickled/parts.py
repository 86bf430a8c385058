"""The values of a pickle while it is read: what each holds, and that no trick makes it large."""

from typing import Any

from service.core.errors import Malformed, TooLarge
from service.web.dialects.pickled.opcodes import LongText

MAX_DEPTH = 32  # containers in containers
MAX_VALUES = 1_000_000  # where a value stands in several places, each of them counts


class Part:
    """
    One value of a pickle.

    Attributes:
        value: the value itself.
        depth: of containers in containers; 0 for a text or a number, 1 for an empty list.
        values: how many are in it, itself included.
        size: bytes of all texts and numbers in it.
        settled: whether it is part of another one.  Nothing is added to it from then on, so no value can
            hold itself, and what was counted stays right.
    """

    __slots__ = ("depth", "settled", "size", "value", "values")

    def __init__(self, value: Any) -> None:
        holds = isinstance(value, list | dict | tuple)
        self.value = value
        self.depth, self.size = (1, 0) if holds else (0, size_of(value))
        self.values = 1
        self.settled = False

    def hold(self, part: "Part", max_bytes: int) -> None:
        """
        Count *part* as a part of this one.

        Raises:
            Malformed: this one may not change any more.
            TooLarge: it holds too much, or lies too deep.
        """
        part.settled = True
        if self.settled:
            raise Malformed("the pickle changes a value that is part of another one")
        self.depth = max(self.depth, part.depth + 1)
        self.values += part.values
        self.size += part.size
        if self.depth > MAX_DEPTH:
            raise TooLarge(f"the pickle is nested more than {MAX_DEPTH} deep")
        if self.values > MAX_VALUES:
            raise TooLarge(f"the pickle holds more than {MAX_VALUES} values")
        if self.size > max_bytes:
            raise TooLarge(f"the values of the pickle hold more than {max_bytes} bytes")


def size_of(value: Any) -> int:
    """Estimate the bytes of a text, of bytes or of a number."""
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    if isinstance(value, LongText):
        return len(value.encoded)
    return value.bit_length() // 8 if isinstance(value, int) else 8
