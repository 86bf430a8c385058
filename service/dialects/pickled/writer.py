"""Pickles of answers, written opcode by opcode (protocol 2, which every Python 3 reads)."""

import struct
from collections.abc import Mapping, Sequence

START, STOP, MARK = b"\x80\x02", b".", b"("
EMPTY_DICT, SETITEMS = b"}", b"u"
EMPTY_LIST, APPENDS = b"]", b"e"
BINFLOAT, BINUNICODE = b"G", b"X"


def written(answer: Mapping[str, Sequence[float] | str]) -> bytes:
    """A pickle of a dict from str to lists of floats or to str."""
    items = b"".join(text(key) + value_of(value) for key, value in answer.items())
    return START + EMPTY_DICT + MARK + items + SETITEMS + STOP


def value_of(value: Sequence[float] | str) -> bytes:
    if isinstance(value, str):
        return text(value)
    numbers = b"".join(BINFLOAT + struct.pack(">d", number) for number in value)
    return EMPTY_LIST + MARK + numbers + APPENDS


def text(value: str) -> bytes:
    encoded = value.encode("utf-8", "replace")
    return BINUNICODE + struct.pack("<I", len(encoded)) + encoded
