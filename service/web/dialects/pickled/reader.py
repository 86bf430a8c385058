"""
Pickles of plain values, read without unpickling them.

A pickle is taken apart into opcodes, and none of them is run.  A few are known here: those of dicts, lists,
tuples, texts, bytes and numbers, and the names by which NumPy writes arrays of texts, which become lists.
All others are refused, and with them everything that names or calls code.  An unpickler whose `find_class`
raises would not do: nine bytes of a memo opcode make the standard library's take gigabytes.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from service.core.errors import Malformed, TooLarge
from service.web.dialects.pickled.opcodes import (
    KNOWN_OPCODES,
    Charge,
    LongText,
    numpy_refusal,
    opcodes,
    refusal,
    refused_name,
    size_of,
)

MAX_STRINGS = 30_000  # opcodes cannot write more
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
class PickledFunction:
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
NAMES: Mapping[str, PickledFunction] = {
    "_codecs encode": PickledFunction(encode),
    "__builtin__ bytes": PickledFunction(no_bytes),
    "numpy dtype": PickledFunction(dtype),
    "numpy ndarray": PickledFunction(reconstruct),
    **{f"numpy.core.{name}": PickledFunction(call) for name, call in OF_NUMPY.items()},  # NumPy 1
    **{f"numpy._core.{name}": PickledFunction(call) for name, call in OF_NUMPY.items()},  # NumPy 2
}


def called(charge: Charge, function: Any, arguments: Any) -> Any:
    """Return the result of a pickle's call.  Raises `Malformed`, `TooLarge`, or `ValueError`."""
    if not isinstance(function, PickledFunction) or not isinstance(arguments, tuple):
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
    charge(len(data), 0)  # only the array is charged: its values were made before
    return data


def length(shape: Any) -> int:
    """How long an array is.  Raises `Malformed`."""
    match shape:
        case (int(count),) if 0 <= count <= MAX_STRINGS:
            return count
        case (_,):
            raise Malformed(f"the pickle holds an array of more than {MAX_STRINGS} values")
    raise numpy_refusal("arrays of other than one dimension")


MAX_DEPTH = 32  # containers in containers
MAX_VALUES = 1_000_000  # where a value stands in several places, each of them counts


class PickledValue:
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

    def hold(self, part: "PickledValue", max_bytes: int) -> None:
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


MAX_OPCODES = 30_000  # some 0.2 s; 64 pictures with prompts and GenEval's metadata have 3,000
MAX_PROTOCOL = 5
VALUE_BYTES = 256  # bytes that a small value and its part take
MAX_DETAIL = 200  # characters

CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
VALUES = {  # their argument is the value
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
PUTS = {"PUT", "BINPUT", "LONG_BINPUT"}
GETS = {"GET", "BINGET", "LONG_BINGET"}


def read_pickle(body: bytes | bytearray, max_bytes: int) -> Any:
    """
    Read the plain value of the pickle *body*, of any protocol from 0 to 5.

    Args:
        max_bytes: of all texts, bytes and numbers, counted in each place where they stand.

    Raises:
        Malformed: no pickle, or one that holds anything but plain values and texts of NumPy.
        TooLarge: it holds too much, or lies too deep.
    """
    reader = PickleReader(max_bytes)
    try:
        for count, (name, argument) in enumerate(opcodes(body, reader.charge)):
            if count >= MAX_OPCODES:
                raise TooLarge(f"the pickle has more than {MAX_OPCODES} opcodes")
            reader.take(name, argument)
    except ValueError as exc:  # an argument that is no number or text
        raise Malformed(f"the body is no pickle that can be read: {exc!s:.{MAX_DETAIL}}") from None
    return reader.result()


class PickleReader:
    """What the opcodes so far have made."""

    # Functions of the class, since those of an instance would make it part of a reference cycle.
    _actions: ClassVar[Mapping[str, Callable[["PickleReader"], object]]] = {
        "MARK": lambda self: self._marks.append(len(self._stack)),
        "EMPTY_LIST": lambda self: self._push([]),
        "EMPTY_DICT": lambda self: self._push({}),
        "LIST": lambda self: self._extend(self._push([], self._to_mark())),
        "DICT": lambda self: self._update(self._push({}, self._to_mark())),
        "TUPLE": lambda self: self._tuple(self._to_mark()),
        "APPEND": lambda self: self._extend(self._last(1)),
        "APPENDS": lambda self: self._extend(self._to_mark()),
        "SETITEM": lambda self: self._update(self._last(2)),
        "SETITEMS": lambda self: self._update(self._to_mark()),
        "MEMOIZE": lambda self: self._put(len(self._memo)),
        "STACK_GLOBAL": lambda self: self._name("STACK_GLOBAL", *(part.value for part in self._last(2))),
        "REDUCE": lambda self: self._reduce(*self._last(2)),
        "BUILD": lambda self: self._build(*self._last(1)),
        "FRAME": lambda _: None,  # it is how the writer cut the pickle up
        "STOP": lambda _: None,
    }

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        # Values that are ever made are counted: the arguments of opcodes, and what calls make of these.
        self._most = VALUE_BYTES * MAX_OPCODES + 2 * max_bytes
        self._made = 0
        self._stack: list[PickledValue] = []
        self._marks: list[int] = []  # lengths of the stack
        self._memo: dict[int, PickledValue] = {}

    def charge(self, values: int, size: int) -> None:
        """Count values and their bytes before they are made.  Raises `TooLarge`."""
        self._made += VALUE_BYTES * values + size
        if self._made > self._most:
            raise TooLarge(f"the values that the pickle makes take more than {self._most} bytes")

    def take(self, name: str, argument: Any) -> None:
        """Do what the opcode of that *name* says.  Raises `Malformed` or `TooLarge`."""
        if name in VALUES:
            self._push(argument)
        elif name in CONSTANTS:
            self._push(CONSTANTS[name])
        elif name in PUTS:
            self._put(argument)
        elif name in GETS:
            self._get(argument)
        elif name in TUPLES:
            self._tuple(self._last(TUPLES[name]))
        elif name in self._actions:
            self._actions[name](self)
        elif name in ("GLOBAL", "INST"):
            self._name(name, argument)
        elif name not in KNOWN_OPCODES:
            raise refusal(name)
        elif argument > MAX_PROTOCOL:  # the opcode PROTO has a protocol that is not read
            raise Malformed(f"pickles of protocol {argument} are not known; send one of {MAX_PROTOCOL}")

    def result(self) -> Any:
        """Return the value.  Raises `Malformed` if there is not exactly one."""
        if len(self._stack) != 1 or self._marks:
            raise Malformed("the pickle does not end with one value")
        return self._stack[0].value

    def _push(self, value: Any, parts: list[PickledValue] | None = None) -> list[PickledValue]:
        """Put *value* on the stack; the parts that are to be in it."""
        self._stack.append(PickledValue(value))
        return parts or []

    def _last(self, count: int) -> list[PickledValue]:
        """Take *count* parts off the stack."""
        base = len(self._stack) - count
        if base < (self._marks[-1] if self._marks else 0):
            raise Malformed("the pickle takes a value that is not there")
        parts = self._stack[base:]
        del self._stack[base:]
        return parts

    def _to_mark(self) -> list[PickledValue]:
        """Take the parts above the last mark off the stack."""
        if not self._marks:
            raise Malformed("the pickle takes a mark that is not there")
        parts = self._last(len(self._stack) - self._marks[-1])
        self._marks.pop()
        return parts

    def _name(self, opcode: str, *parts: Any) -> None:
        """Push the function of a name.  Raises `Malformed` if the name is unknown."""
        texts = [part for part in parts if type(part) is str]
        known = NAMES.get(" ".join(texts)) if len(texts) == len(parts) and opcode != "INST" else None
        if known is None:
            raise refused_name(opcode, *parts)
        self._push(known)

    def _reduce(self, function: PickledValue, arguments: PickledValue) -> None:
        self._push(called(self.charge, function.value, arguments.value))
        self._count_array(arguments)

    def _build(self, state: PickledValue) -> None:
        build(self.charge, self._top().value, state.value)
        self._count_array(state)

    def _count_array(self, written: PickledValue) -> None:
        """Count what an array on top of the stack was made of, and its texts, which no opcodes wrote."""
        top = self._stack[-1]
        if isinstance(top.value, Array):
            top.values += len(top.value)
            top.hold(written, self._max_bytes)

    def _tuple(self, parts: list[PickledValue]) -> None:
        self._push(tuple(part.value for part in parts))
        self._hold(parts)

    def _extend(self, parts: list[PickledValue]) -> None:
        self._container(list).extend(part.value for part in parts)
        self._hold(parts)

    def _update(self, parts: list[PickledValue]) -> None:
        container, keys, values = self._container(dict), parts[::2], parts[1::2]
        if len(keys) != len(values):
            raise Malformed("the pickle sets a key without a value")
        for key, value in zip(keys, values, strict=True):
            if type(key.value) is not str:  # equal hashes of other keys are easily made, and take long
                raise Malformed("a dict of the pickle has a key that is not a str")
            container[key.value] = value.value
        self._hold(parts)

    def _container(self, kind: type) -> Any:
        """Return the value on top of the stack.  Raises `Malformed` if it is not of that *kind*."""
        top = self._top()
        if type(top.value) is not kind:
            raise Malformed(f"the pickle adds to a value that is no {kind.__name__}")
        return top.value

    def _top(self) -> PickledValue:
        """Return the part on top of the stack, which stays there."""
        self._stack += self._last(1)
        return self._stack[-1]

    def _hold(self, parts: list[PickledValue]) -> None:
        for part in parts:
            self._stack[-1].hold(part, self._max_bytes)

    def _put(self, number: int) -> None:
        if not 0 <= number < MAX_OPCODES:
            raise TooLarge(f"the pickle gives a value a number above {MAX_OPCODES}")
        self._memo[number] = self._top()

    def _get(self, number: int) -> None:
        if number not in self._memo:
            raise Malformed("the pickle names a value that is not there")
        self._stack.append(self._memo[number])
