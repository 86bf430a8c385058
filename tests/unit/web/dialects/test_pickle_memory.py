"""What a pickle may make in all, and that it is freed."""

import gc
import struct
import tracemalloc
from contextlib import suppress

import pytest

from service.core.errors import Malformed, TooLarge
from service.web.dialects.pickled.opcodes import MAX_TEXT, opcodes
from service.web.dialects.pickled.reader import MAX_OPCODES, VALUE_BYTES, PickleReader, read_pickle

MB = 2**20


def counted(length, opcode, kind="<I"):
    return opcode + struct.pack(kind, length)


def name(module, function):
    """Push a function, and remember it as number 0."""
    return (
        b"\x80\x04"
        + b"".join(b"\x8c" + bytes([len(each)]) + each for each in (module, function))
        + b"\x93q\0"
    )


def remembered(number, argument):
    return argument + b"q" + bytes([number])


def again(*numbers, call=b"\x87R"):
    """Call function 0 with remembered arguments."""
    return b"h\0" + b"".join(b"h" + bytes([number]) for number in numbers) + call


TEXTS = remembered(1, b"\x8c\x05numpy\x8c\x05dtype\x93\x8c\x02U2\x89\x88\x87R")
SHAPE = remembered(3, b"M" + struct.pack("<H", 20_000) + b"\x85")
CALLS_AGAIN = {  # a few bytes each, for a megabyte or 20,000 values
    "a text": name(b"_codecs", b"encode")
    + remembered(1, counted(MB, b"X") + b"a" * MB)
    + remembered(2, b"\x8c\x06latin1")
    + again(1, 2, call=b"\x86R") * 100,
    "a long array of texts": name(b"numpy._core.numeric", b"_frombuffer")
    + TEXTS
    + remembered(2, counted(160_000, b"B") + "\u0416\0".encode("utf-32-le") * 20_000)
    + SHAPE
    + again(2, 1, 3) * 100,
    "the state of an array of objects": name(b"numpy", b"ndarray")
    + remembered(1, b"\x8c\x05numpy\x8c\x05dtype\x93\x8c\x02O8\x89\x88\x87R")
    + remembered(2, b"](" + b"N" * 20_000 + b"e")
    + SHAPE
    + remembered(4, b"(K\x01h\x03h\x01\x89h\x02t")
    + b"h\0)Rh\x04b" * 100,
}


@pytest.mark.parametrize("name", CALLS_AGAIN)
def test_what_calls_make_of_one_argument_counts_each_time(name):
    """Before it is made: all that is ever made is bounded, wherever it stands."""
    body, limit = CALLS_AGAIN[name], 4 * MB
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge, match="take more than"):
            read_pickle(body, limit)
        assert tracemalloc.get_traced_memory()[1] < 2 * limit + VALUE_BYTES * MAX_OPCODES + MB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("body", "charged"),
    [
        (counted(5, b"B") + bytes(5), 5),
        (counted(5, b"X") + b"a" * 5, 20),  # a character may take four bytes
        (counted(MAX_TEXT, b"X") + b"a" * MAX_TEXT, 4 * MAX_TEXT),
        (counted(MAX_TEXT + 1, b"X") + b"a" * (MAX_TEXT + 1), 0),  # which stays where it is
        (b"K\x01", 1),
        (b"N", 0),
    ],
)
def test_an_argument_is_charged_by_the_most_bytes_that_it_may_take_before_it_is_made(body, charged):
    """As one value, and the end of the pickle as another one."""
    charges = []
    read = opcodes(body + b".", lambda *charge: charges.append(charge))
    next(read)

    assert [(1, charged)] == charges
    assert ["STOP"] == [name for name, _ in read]
    assert [(1, charged), (1, 0)] == charges


def test_as_much_as_all_opcodes_may_make_can_be_made():
    """A byte more is refused."""
    reader = PickleReader(10)
    reader.charge(MAX_OPCODES, 20)

    with pytest.raises(TooLarge, match=rf"take more than {VALUE_BYTES * MAX_OPCODES + 20} bytes"):
        reader.charge(0, 1)


@pytest.mark.parametrize("end", [b".", b"N."], ids=["read", "refused"])
def test_the_values_of_a_pickle_are_freed_without_the_garbage_collector(end):
    """The reader is part of no reference cycle: five bodies of 60 MB would stay until a full collection."""
    body = counted(4 * MB, b"\x80\x04B") + bytes(4 * MB) + end
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(2):
            with suppress(Malformed):
                read_pickle(body, 64 * MB)
        assert tracemalloc.get_traced_memory()[0] < MB
    finally:
        tracemalloc.stop()
        gc.enable()
