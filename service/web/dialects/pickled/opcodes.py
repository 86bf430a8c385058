"""
The opcodes of a pickle, one by one, each with its argument.

The lengths of arguments are checked before anything is made of them.  `pickletools.genops` would copy and
decode an argument of any length first.
"""

import pickletools
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from service.core.errors import Malformed

MAX_TEXT = 64 * 2**10  # bytes; a prompt of 4,000 characters has 40,000 at most, as protocol 0 writes it

NAMES = {"GLOBAL", "INST"}  # their argument names something
BYTES = {"SHORT_BINBYTES": bytes, "BINBYTES": bytes, "BINBYTES8": bytes, "BYTEARRAY8": bytearray}
TEXTS = {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}
NUMBERS = {"LONG1", "LONG4"}
KNOWN_OPCODES = {
    *("PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE"),
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "FLOAT", "BINFLOAT", "UNICODE"),
    *(*BYTES, *TEXTS, *NUMBERS, *NAMES),
    *("EMPTY_LIST", "EMPTY_DICT", "EMPTY_TUPLE", "LIST", "DICT", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
    *("APPEND", "APPENDS", "SETITEM", "SETITEMS"),
    *("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET"),
    *("STACK_GLOBAL", "REDUCE", "BUILD"),
}
OPCODES = {ord(opcode.code): opcode for opcode in pickletools.opcodes}
LENGTH_FORMATS = {  # how the length of an argument is written before it
    pickletools.TAKEN_FROM_ARGUMENT1: struct.Struct("<B"),
    pickletools.TAKEN_FROM_ARGUMENT4: struct.Struct("<i"),
    pickletools.TAKEN_FROM_ARGUMENT4U: struct.Struct("<I"),
    pickletools.TAKEN_FROM_ARGUMENT8U: struct.Struct("<Q"),
}

PLAIN = "a plain dict of lists, str, bytes and numbers"
IMAGES = "send each picture as the bytes of a JPEG or PNG file"
NUMPY = "send texts as a list or an array of str, numbers as a list, and pictures as bytes"
ADVICE = {
    "numpy": f"it holds NumPy objects that are no texts: {NUMPY}",
    "torch": f"it holds tensors: {IMAGES}",
    "PIL": f"it holds PIL images: {IMAGES}",
}
MAX_NAME = 100  # characters

CHARACTER = 4  # most bytes in memory for a byte of UTF-8

Charge = Callable[[int, int], None]
"""Count values and their bytes before they are made.  Raises `TooLarge`."""


@dataclass(frozen=True, slots=True)
class LongText:
    """A text longer than `MAX_TEXT`, as it stands in the body: UTF-8 that is not decoded."""

    encoded: memoryview


def size_of(value: Any) -> int:
    """Estimate the bytes of a text, of bytes or of a number."""
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    if isinstance(value, LongText):
        return len(value.encoded)
    return value.bit_length() // 8 if isinstance(value, int) else 8


def opcodes(body: bytes | bytearray, charge: Charge) -> Iterator[tuple[str, Any]]:
    """
    Yield the name and the argument of each opcode up to the end of the pickle.

    Each counts as a value, and its argument by the most bytes that it may take.

    An opcode that is not `KNOWN_OPCODES` has no argument, and must be the last that is taken.

    Raises:
        TooLarge: the charge is refused.
        Malformed: the pickle is cut short, goes on after its end, or has an argument that is too long.
        ValueError: an argument cannot be decoded.
    """
    view, at, name = memoryview(body), 0, ""
    while name != "STOP":
        opcode = OPCODES.get(view[at]) if at < len(view) else None
        if opcode is None:
            raise Malformed("the body is no pickle that can be read: an opcode is missing or unknown")
        name, at = opcode.name, at + 1
        if name not in KNOWN_OPCODES:
            yield name, None
        start, at = span(opcode, body, at)
        charge(1, made_of(name, at - start))
        yield name, argument(opcode, view[start:at]) if opcode.arg else None
    if at < len(view):
        raise Malformed("the body goes on after the end of the pickle")


def span(opcode: pickletools.OpcodeInfo, body: bytes | bytearray, at: int) -> tuple[int, int]:
    """Where the argument of *opcode* begins and ends.  Raises `Malformed`."""
    if opcode.arg is None:
        return at, at
    size = opcode.arg.n
    if size == pickletools.UP_TO_NEWLINE:
        end = line(opcode.name, body, at)
        return at, line(opcode.name, body, end) if opcode.name in NAMES else end
    if form := LENGTH_FORMATS.get(size):
        at += form.size
        if at > len(body):
            raise cut_short()
        [size] = form.unpack_from(body, at - form.size)
    if not 0 <= size <= len(body) - at:
        raise cut_short()
    if opcode.name in NUMBERS and size > MAX_TEXT:
        raise too_long(opcode.name)
    return at, at + size


def line(name: str, body: bytes | bytearray, at: int) -> int:
    """Return the end of the line that begins at *at*.  Raises `Malformed`."""
    end = body.find(b"\n", at, at + MAX_TEXT) + 1
    if not end:
        raise too_long(name) if len(body) - at >= MAX_TEXT else cut_short()
    return end


def made_of(name: str, size: int) -> int:
    """Return the most bytes that are made of an argument of *size* bytes."""
    if name not in TEXTS:
        return size
    return 0 if size > MAX_TEXT else CHARACTER * size


def argument(opcode: pickletools.OpcodeInfo, written: memoryview) -> Any:
    """Return the argument of *opcode*; a long text stays as it was *written*."""
    if kind := BYTES.get(opcode.name):
        return kind(written)
    if opcode.name in TEXTS:
        return LongText(written) if len(written) > MAX_TEXT else str(written, "utf-8", "surrogatepass")
    if opcode.name in NUMBERS:
        return int.from_bytes(written, "little", signed=True)
    assert opcode.arg
    return opcode.arg.reader(BytesIO(written))


def cut_short() -> Malformed:
    return Malformed("the body is no pickle that can be read: it is cut short")


def too_long(name: str) -> Malformed:
    return Malformed(f"the argument of the opcode {name} is longer than {MAX_TEXT} bytes")


def refusal(opcode: str) -> Malformed:
    """Build the error of an unknown opcode."""
    return Malformed(f"the pickle must hold {PLAIN}; the opcode {opcode} is refused")


def refused_name(opcode: str, *parts: Any) -> Malformed:
    """Build the error of a name, in one part or several, in the argument of *opcode* or on the stack."""
    name = " ".join(part[:MAX_NAME] for part in parts if isinstance(part, str))[:MAX_NAME]
    advice = ADVICE.get(name.split(".")[0].split(" ")[0], f"the opcode {opcode} is refused")
    return Malformed(f"the pickle must hold {PLAIN}, and it names {name!r}; {advice}")


def numpy_refusal(what: str) -> Malformed:
    """Build the error of NumPy values that are not texts."""
    return Malformed(f"the pickle holds NumPy's {what}: {NUMPY}")
