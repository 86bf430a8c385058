"""Pickles of callers: plain values are read, everything else is refused before it costs anything."""

import builtins
import os
import pickle
import struct
import tracemalloc
from collections import OrderedDict
from datetime import date
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from service.core.errors import Malformed, TooLarge
from service.web.dialects.pickled import reader
from service.web.dialects.pickled.reader import MAX_DEPTH, MAX_OPCODES, read_pickle

MB = 2**20
LIMIT = 64 * MB
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_values_that_stand_in_several_places_are_read(protocol):
    """A trainer repeats the same prompt and the same metadata."""
    metadata = {"tag": "colour", "include": [{"class": "dog", "count": 1}]}
    value = {"prompts": ["a dog"] * 24, "metadata": [metadata] * 24}

    assert value == read_pickle(pickle.dumps(value, protocol), LIMIT)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("value", [0, -1, 255, 2**31, -(2**31) - 1, 2**70, -(2**70), -(2**3000), 0.5, -0.0])
def test_a_number_keeps_its_size_and_sign(value, protocol):
    """Protocols write large integers as two's complement, each in an opcode of its own."""
    assert repr(value) == repr(read_pickle(pickle.dumps(value, protocol), LIMIT))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_none_true_and_false_are_read_as_they_are(protocol):
    """Up to protocol 1 the truth values are numbers of two digits."""
    assert "[None, True, False]" == repr(read_pickle(pickle.dumps([None, True, False], protocol), LIMIT))


def test_a_list_that_is_pushed_with_its_values_holds_them():
    """LIST takes the values above the mark; Python's own pickler appends them one by one."""
    assert [1, 2] == read_pickle(b"(I1\nI2\nl.", LIMIT)


class Call:
    """What the pickle of it does when it is unpickled."""

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


@pytest.fixture
def armed(monkeypatch):
    """Fail where anything that a payload names is called."""

    def called(*args):
        raise AssertionError(args)

    monkeypatch.setattr(os, "system", called)
    monkeypatch.setattr(builtins, "eval", called)


ATTACKS = {
    "GLOBAL and REDUCE": b"cos\nsystem\n(S'id'\ntR.",
    "GLOBAL alone": b"cos\nsystem\n.",
    "STACK_GLOBAL": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.",
    "INST": b"(S'id'\nios\nsystem\n.",
    "INST without arguments": b"(ios\nsystem\n.",
    "OBJ": b"(cos\nsystem\nS'id'\no.",
    "NEWOBJ": b"\x80\x02cos\nsystem\n)\x81.",
    "NEWOBJ_EX": b"\x80\x04cos\nsystem\n)}\x92.",
    "BUILD": b"\x80\x02}}b.",
    "PERSID": b"Pname\n.",
    "BINPERSID": b"\x80\x02]Q.",
    "EXT1": b"\x80\x02\x82\x01.",
    "EXT2": b"\x80\x02\x83\x01\x00.",
    "EXT4": b"\x80\x02\x84\x01\x00\x00\x00.",
    "NEXT_BUFFER": b"\x80\x05\x97.",
    "READONLY_BUFFER": b"\x80\x05]\x98.",
    "in a list of pictures": b"\x80\x04}(\x8c\x06images](cos\nsystem\n\x8c\x02id\x85Reu.",
}


@pytest.mark.usefixtures("armed")
@pytest.mark.parametrize("name", ATTACKS)
def test_a_pickle_that_names_or_calls_code_is_refused(name):
    with pytest.raises(Malformed, match=r"refused|opcode"):
        read_pickle(ATTACKS[name], LIMIT)


CALLS = [Call(os.system, ("id",)), Call(eval, ("1",)), OrderedDict(a=1), Call]


@pytest.mark.usefixtures("armed")
@pytest.mark.parametrize(
    "body", [pickle.dumps({"images": [call]}, protocol) for call in CALLS for protocol in PROTOCOLS]
)
def test_what_pickle_writes_for_a_call_is_refused(body):
    with pytest.raises(Malformed, match="refused"):
        read_pickle(body, LIMIT)


FOREIGN = [
    (np.float32(1), "NumPy.*numbers as a list"),
    (np.array([1.5, 2.0]), "NumPy.*numbers as a list"),
    (np.zeros((2, 4, 4, 3), np.uint8), "pictures as bytes"),
    (np.array([["a dog"], ["a cat"]]), "one dimension"),
    (np.array(["a dog", "a cat"], "S"), "NumPy"),
    (PIL.Image.new("RGB", (4, 4)), "JPEG"),
    ({1, 2}, "refused"),
    (date(2026, 1, 1), "datetime"),
]


@pytest.mark.parametrize(("value", "advice"), FOREIGN, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_objects_of_libraries_are_refused_with_what_to_send(value, advice, protocol):
    with pytest.raises(Malformed, match=advice):
        read_pickle(pickle.dumps({"images": [b"x"], "prompts": value}, protocol), LIMIT)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bytes_of_an_old_protocol_are_read(protocol):
    """Up to protocol 2 they are a text in Latin-1, and a call that encodes it."""
    picture = bytes(range(256))

    assert {"images": [picture]} == read_pickle(pickle.dumps({"images": [picture]}, protocol), LIMIT)
    assert [2 * MB] == [*map(len, read_pickle(pickle.dumps([bytes(2 * MB)], max(1, protocol)), LIMIT))]


def counted(length, opcode, kind="<Q"):
    return opcode + struct.pack(kind, length)


def memo_laughs(levels):
    """A list of ten lists of ten lists …, of which each is there once."""
    value: list = []
    for _ in range(levels):
        value = [value] * 10
    return pickle.dumps(value, 4)


def nested(count):
    return b"]" * count + b"a" * (count - 1) + b"."


def equal_hashes(count):
    """A dict whose keys have one hash; to make the dict itself takes seconds."""
    keys = (pickle.dumps(number * (2**61 - 1), 2)[2:-1] for number in range(count))
    return b"\x80\x02}(" + b"".join(key + b"N" for key in keys) + b"u."


def unread(count):
    """A text that nobody may read: UTF-8 whose decoding takes four times its length."""
    text = "\U0001f600".encode() + b"a" * count
    return counted(len(text), b"X", "<I") + text


LONG = {
    "a name of dots, from the stack": b"\x80\x04"
    + counted(12 * MB, b"X", "<I")
    + b"ab." * 4 * MB
    + b"\x8c\x01x\x93.",
    "a name of dots": b"\x80\x02c" + b"ab." * 4 * MB + b"\nx\n.",
    "a second name of dots": b"\x80\x02cx\n" + b"ab." * 4 * MB + b"\n.",
    "the name of an instance": b"\x80\x02(i" + b"ab." * 4 * MB + b"\nx\n.",
    "a number with a point": b"F" + b"1" * 12 * MB + b"\n.",
    "a line without an end": b"F" + b"1" * 12 * MB,
    "a number of bytes": counted(12 * MB, b"\x80\x02\x8b", "<i") + bytes(12 * MB) + b".",
    "a key": b"\x80\x04}" + unread(12 * MB) + b"Ns.",
    "an emoji among bytes": b"\x80\x02c_codecs\nencode\n" + unread(12 * MB) + b"X\x06\0\0\0latin1\x86R.",
}
BOMBS = {
    "a memo's number of 2**31": counted(2**31, b"]r", "<I") + b".",
    "a memo's number of 2**32 - 1": counted(2**32 - 1, b"]r", "<I") + b".",
    "a memo's number in digits": b"]p" + b"9" * 4000 + b"\n.",
    "a TiB of bytes": counted(2**40, b"\x80\x04\x8e") + b"x.",
    "a TiB of text": counted(2**40, b"\x80\x04\x8d") + b"x.",
    "a TiB of bytearray": counted(2**40, b"\x80\x05\x96") + b"x.",
    "more bytes than there are numbers": counted(2**64 - 1, b"\x80\x04\x8e") + b"x.",
    "four GiB of bytes": counted(2**32 - 1, b"\x80\x03B", "<I") + b"x.",
    "a number of two GiB": counted(2**31 - 1, b"\x80\x02\x8b", "<i") + b"x.",
    "a number of less than nothing": counted(-1, b"\x80\x02\x8b", "<i") + b"x.",
    "a frame of a TiB": counted(2**40, b"\x80\x04\x95") + b"a.",
    "frames in frames": b"\x80\x04" + counted(0, b"\x95") * 1_000_000 + b"N.",
    "a million nested lists": nested(1_000_000),
    "lists nested too deep": nested(MAX_DEPTH + 1),
    "a million marks": b"(" * 1_000_000 + b".",
    "a million times None": b"(" + b"N" * 1_000_000 + b"l.",
    "a number of many digits": b"L" + b"9" * 1_000_000 + b"L\n.",
    "another number of many digits": b"I" + b"9" * 1_000_000 + b"\n.",
    "lists of lists of lists": memo_laughs(12),
    "a list that holds itself": b"]q\x00h\x00a.",
    "lists that hold each other": b"]q\x00]q\x01h\x00ah\x00h\x01a.",
    "a dict that holds itself": b"}q\x00X\x01\x00\x00\x00ah\x00s.",
    "keys with equal hashes": equal_hashes(20_000),
    "a picture many times": b"\x80\x04]("
    + counted(MB, b"B", "<I")
    + bytes(MB)
    + b"q\x00"
    + b"h\x00" * 90
    + b"e.",
    "a protocol to come": b"\x80\x06N.",
    **LONG,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_what_would_take_memory_or_time_is_refused(name):
    """And takes little more than the body itself."""
    body = BOMBS[name]
    tracemalloc.start()
    try:
        with pytest.raises((Malformed, TooLarge)):
            read_pickle(body, LIMIT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < len(body) + 32 * MB


def test_as_much_as_is_allowed_is_read():
    """One more is not."""
    deep = nested(MAX_DEPTH)

    assert len(repr(read_pickle(deep, LIMIT))) == 2 * MAX_DEPTH
    around_a_number = b"]" * MAX_DEPTH + b"K\x01" + b"a" * MAX_DEPTH + b"."
    assert len(repr(read_pickle(around_a_number, LIMIT))) == 2 * MAX_DEPTH + 1
    assert 90 == len(read_pickle(pickle.dumps([bytes(1000)] * 90, 4), 90_000))
    with pytest.raises(TooLarge):
        read_pickle(pickle.dumps([bytes(1000)] * 91, 4), 90_000)


def test_opcodes_are_counted():
    half = (MAX_OPCODES - 4) // 2
    assert half == len(read_pickle(b"(" + b"N" * half + b"l.", LIMIT))
    with pytest.raises(TooLarge, match="opcodes"):
        read_pickle(b"(" + b"N" * MAX_OPCODES + b"l.", LIMIT)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b".", b"N", b"NN.", b"(.", b"(N.", b"a.", b"Na.", b"]N)e.", b"e.", b"s.", b"}Ns.", b"}(Nu."),
        *(
            b"h\x00.",
            b"g1\n.",
            b"\x94.",
            b"\x85.",
            b"N(\x85.",
            b"](Na.",
            b"NN0.",
            b"N2.",
            b"(1.",
            b"\x8f.",
            b"N.N",
        ),
        *(b"}(K\x01Nu.", b"\x80", b"X\x04\x00\x00\x00\xff\xff\xff\xff.", b"Fnot a number\n.", b"S'text'\n."),
    ],
)
def test_what_is_no_whole_pickle_is_refused(body):
    with pytest.raises(Malformed):
        read_pickle(body, LIMIT)


def test_a_refusal_shows_little_of_the_body():
    with pytest.raises(Malformed) as refused:
        read_pickle(b"F" + b"x" * 100_000 + b"\n.", LIMIT)
    assert len(refused.value.detail) < 300
    with pytest.raises(Malformed) as refused:
        read_pickle(b"c" + b"x" * 100_000 + b"\nname\n.", LIMIT)
    assert len(refused.value.detail) < 300


def test_nothing_in_the_reader_can_unpickle():
    """The standard library's unpickler is not so much as named."""
    assert "pickle" not in vars(reader)
    assert "Unpickler" not in Path(reader.__file__).read_text("utf-8")


@pytest.mark.parametrize("name", LONG)
def test_what_is_too_long_is_refused_before_anything_is_made_of_it(name):
    """A body of 12 MB is not copied once."""
    tracemalloc.start()
    try:
        with pytest.raises((Malformed, TooLarge)):
            read_pickle(LONG[name], LIMIT)
        assert tracemalloc.get_traced_memory()[1] < MB
    finally:
        tracemalloc.stop()
