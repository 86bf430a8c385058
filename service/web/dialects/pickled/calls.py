"""
The few calls that pickles of trainers may hold, and their results.

NumPy's arrays of texts are lists here, its scalars are texts, and bytes of protocol 2 are bytes.  Nothing is
imported or called by the name that the pickle gives.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.core.errors import Malformed
from service.web.dialects.pickled.opcodes import Charge, LongText, numpy_refusal, size_of

MAX_STRINGS = 30_000  # as many as opcodes can write
LATIN_1 = 0xC3  # the largest byte in the UTF-8 of a text that Latin-1 has, too
TEXTS_OR_OBJECTS = re.compile("[<>|=]?(?:U([0-9]{1,7})|O8?)")
BROKEN = "the pickle holds a NumPy array that cannot be read"


@dataclass(slots=True)
class Dtype:
    """What an array holds: texts of so many characters, or plain values (None)."""

    length: int | None
    order: str = "<"


class Array(list[Any]):
    """A NumPy array of texts or of plain values, filled by its state."""


@dataclass(frozen=True, slots=True)
class Known:
    """A function that pickles may call by a name; its first argument is the `Charge`."""

    call: Callable[..., Any]


def encode(charge: Charge, text: str | LongText, encoding: str) -> bytes:
    """Bytes, as protocols 0 to 2 write them."""
    if encoding not in ("latin1", "latin-1"):
        raise Malformed("the pickle encodes a text in another way than as Latin-1")
    charge(1, size_of(text))
    if isinstance(text, LongText):
        if int(np.frombuffer(text.encoded, np.uint8).max()) > LATIN_1:
            raise Malformed("the pickle holds bytes that are no Latin-1")
        text = str(text.encoded, "utf-8")
    return text.encode("latin-1")


def no_bytes(_: Charge) -> bytes:
    """Bytes of no length, as protocols 0 to 2 write them."""
    return b""


def dtype(_: Charge, written: str, *_more: Any) -> Dtype:
    found = TEXTS_OR_OBJECTS.fullmatch(written)
    if not found:
        raise numpy_refusal(f"values of the type {written[:8]!r}")
    return Dtype(int(found[1]) if found[1] else None)


def reconstruct(*_: Any) -> Array:
    return Array()


def from_buffer(charge: Charge, data: Any, kind: Dtype, shape: Any, *_: Any) -> Array:
    return Array(texts(charge, data, kind, shape))


def scalar(charge: Charge, kind: Dtype, data: Any) -> str:
    return texts(charge, data, kind, (1,))[0] if data else ""


OF_NUMPY: Mapping[str, Callable[..., Any]] = {
    "multiarray _reconstruct": reconstruct,
    "multiarray scalar": scalar,
    "numeric _frombuffer": from_buffer,
}
NAMES: Mapping[str, Known] = {
    "_codecs encode": Known(encode),
    "__builtin__ bytes": Known(no_bytes),
    "numpy dtype": Known(dtype),
    "numpy ndarray": Known(reconstruct),
    **{f"numpy.core.{name}": Known(call) for name, call in OF_NUMPY.items()},  # NumPy 1
    **{f"numpy._core.{name}": Known(call) for name, call in OF_NUMPY.items()},  # NumPy 2
}


def called(charge: Charge, function: Any, arguments: Any) -> Any:
    """Return the result of a pickle's call.  Raises `Malformed`, `TooLarge`, or `ValueError`."""
    if not isinstance(function, Known) or not isinstance(arguments, tuple):
        raise Malformed("the pickle calls a value; the opcode REDUCE is refused")
    try:
        return function.call(charge, *arguments)
    except (TypeError, AttributeError):  # arguments that NumPy never writes
        raise Malformed(BROKEN) from None


def build(charge: Charge, value: Any, state: Any) -> None:
    """Give *value* the *state* that a pickle has for it.  Raises `Malformed`, `TooLarge`, or `ValueError`."""
    match value, state:
        case Dtype(), (int(), "<" | ">" | "|" | "=" as order, *_):
            value.order = order if order in "<>" else "<"
        case Array(), (int(), tuple(shape), Dtype() as kind, _, data) if not value:
            plain = kind.length is None
            value.extend(objects(charge, data, shape) if plain else texts(charge, data, kind, shape))
        case _:
            raise Malformed("the pickle gives a value a state; the opcode BUILD is refused")


def texts(charge: Charge, data: Any, kind: Dtype, shape: Any) -> list[str]:
    """
    Return the texts of an array, without their NUL padding.  Raises `Malformed`, `TooLarge`, or `ValueError`.
    """
    count = length(shape)
    size = 4 * (kind.length or 0)
    if not isinstance(data, bytes | bytearray) or not size or len(data) != size * count:
        raise Malformed(BROKEN)
    charge(count, len(data))
    view, encoding = memoryview(data), "utf-32-le" if kind.order == "<" else "utf-32-be"
    return [str(view[at : at + size], encoding).rstrip("\0") for at in range(0, len(view), size)]


def objects(charge: Charge, data: Any, shape: Any) -> list[Any]:
    """Return the values of an array of objects.  Raises `Malformed` or `TooLarge`."""
    if type(data) is not list or len(data) != length(shape):
        raise Malformed(BROKEN)
    charge(len(data), 0)  # of the array: its values were made before
    return data


def length(shape: Any) -> int:
    """How long an array is.  Raises `Malformed`."""
    match shape:
        case (int(count),) if 0 <= count <= MAX_STRINGS:
            return count
        case (_,):
            raise Malformed(f"the pickle holds an array of more than {MAX_STRINGS} values")
    raise numpy_refusal("arrays of other than one dimension")
