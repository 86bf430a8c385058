"""Pickles of answers, written opcode by opcode (protocol 2, which every Python 3 reads)."""

import struct
from collections.abc import Mapping, Sequence
from typing import TypeAlias

START, STOP, MARK = b"\x80\x02", b".", b"("
EMPTY_DICT, SETITEMS = b"}", b"u"
EMPTY_LIST, APPENDS = b"]", b"e"
BINFLOAT, BINUNICODE = b"G", b"X"

Value: TypeAlias = "str | Sequence[float] | Mapping[str, Value]"


def written(answer: Mapping[str, Value]) -> bytes:
    """Pickle a dict."""
    return START + dict_of(answer) + STOP


def value_of(value: Value) -> bytes:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return dict_of(value)
    numbers = b"".join(BINFLOAT + struct.pack(">d", number) for number in value)
    return EMPTY_LIST + MARK + numbers + APPENDS


def dict_of(values: Mapping[str, Value]) -> bytes:
    items = b"".join(text(key) + value_of(value) for key, value in values.items())
    return EMPTY_DICT + MARK + items + SETITEMS


def text(value: str) -> bytes:
    encoded = value.encode("utf-8", "replace")
    return BINUNICODE + struct.pack("<I", len(encoded)) + encoded
