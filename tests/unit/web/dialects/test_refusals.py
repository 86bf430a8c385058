"""What the author of a client reads where a pickle is refused, and the last thing that is not refused."""

import pickle
import struct

import pytest

from service.core.errors import Malformed, TooLarge
from service.web.dialects.pickled.opcodes import MAX_TEXT, LongText
from service.web.dialects.pickled.reader import MAX_OPCODES, MAX_STRINGS, MAX_VALUES, read_pickle
from tests.unit.web.dialects.test_numpy_texts import array_of

LIMIT = 2**26
PLAIN = "the pickle must hold a plain dict of lists, str, bytes and numbers"
NUMPY = "send texts as a list or an array of str, numbers as a list, and pictures as bytes"
PICTURES = "send each picture as the bytes of a JPEG or PNG file"
BROKEN = "the pickle holds a NumPy array that cannot be read"
CUT_SHORT = "the body is no pickle that can be read: it is cut short"
UNKNOWN = "the body is no pickle that can be read: an opcode is missing or unknown"
NOT_THERE = "the pickle takes a value that is not there"
MALFORMED = {
    "nothing": (b"", UNKNOWN),
    "no opcode": (b"\xff.", UNKNOWN),
    "no end": (b"N", UNKNOWN),
    "no end behind an empty text": (b"X\0\0\0\0", UNKNOWN),
    "no end behind a text": (b"X\x01\0\0\0a", UNKNOWN),
    "a long line of two": (
        b"cos\n" + b"a" * MAX_TEXT,
        f"the argument of the opcode GLOBAL is longer than {MAX_TEXT} bytes",
    ),
    "two pickles": (b"N.N.", "the body goes on after the end of the pickle"),
    "half a length": (b"X\x05\0", CUT_SHORT),
    "half a text": (b"X\x05\0\0\0ab", CUT_SHORT),
    "half a line": (b"F1.5", CUT_SHORT),
    "half a line behind a long text": (
        b"X" + struct.pack("<I", MAX_TEXT) + b"a" * MAX_TEXT + b"F1.5",
        CUT_SHORT,
    ),
    "a length below nothing": (b"\x8b\xff\xff\xff\xff.", CUT_SHORT),
    "a long line": (
        b"F" + b"1" * MAX_TEXT,
        f"the argument of the opcode FLOAT is longer than {MAX_TEXT} bytes",
    ),
    "a long number": (
        b"\x8b" + struct.pack("<i", MAX_TEXT + 1) + bytes(MAX_TEXT + 1) + b".",
        f"the argument of the opcode LONG4 is longer than {MAX_TEXT} bytes",
    ),
    "a number in words": (
        b"Fone\n.",
        "the body is no pickle that can be read: could not convert string to float: b'one'",
    ),
    "a protocol to come": (b"\x80\x06N.", "pickles of protocol 6 are not known; send one of 5"),
    "two values": (b"NN.", "the pickle does not end with one value"),
    "a mark that is left": (b"N(.", "the pickle does not end with one value"),
    "nothing to append": (b"]a.", NOT_THERE),
    "nothing above the mark": (b"N(\x85.", NOT_THERE),
    "no mark": (b"]e.", "the pickle takes a mark that is not there"),
    "a key alone": (b"}(Nu.", "the pickle sets a key without a value"),
    "a key that is a number": (b"}K\x01Ns.", "a dict of the pickle has a key that is not a str"),
    "a list that is None": (b"NNa.", "the pickle adds to a value that is no list"),
    "a dict that is a list": (b"]\x8c\x01aNs.", "the pickle adds to a value that is no dict"),
    "a list that changes later": (
        b"]q\0]h\0ah\0Na.",
        "the pickle changes a value that is part of another one",
    ),
    "no such number": (b"h\x01.", "the pickle names a value that is not there"),
    "a call of None": (b"N)R.", "the pickle calls a value; the opcode REDUCE is refused"),
    "a call with None": (b"cnumpy\ndtype\nNR.", "the pickle calls a value; the opcode REDUCE is refused"),
    "a state of None": (b"N}b.", "the pickle gives a value a state; the opcode BUILD is refused"),
    "a set": (b"\x8f.", f"{PLAIN}; the opcode EMPTY_SET is refused"),
    "a name": (b"cos\nsystem\n.", f"{PLAIN}, and it names 'os system'; the opcode GLOBAL is refused"),
    "a name from the stack": (
        b"\x8c\x02os\x8c\x06system\x93.",
        f"{PLAIN}, and it names 'os system'; the opcode STACK_GLOBAL is refused",
    ),
    "a name that is a number": (
        b"\x8c\x05numpyK\x01\x93.",
        f"{PLAIN}, and it names 'numpy'; it holds NumPy objects that are no texts: {NUMPY}",
    ),
    "an instance of what is known": (
        b"(inumpy\ndtype\n.",
        f"{PLAIN}, and it names 'numpy dtype'; it holds NumPy objects that are no texts: {NUMPY}",
    ),
    "a long name": (
        b"c" + b"x" * 200 + b"\ny\n.",
        f"{PLAIN}, and it names {'x' * 100!r}; the opcode GLOBAL is refused",
    ),
    "of NumPy": (
        b"cnumpy.random\nnormal\n.",
        f"{PLAIN}, and it names 'numpy.random normal'; it holds NumPy objects that are no texts: {NUMPY}",
    ),
    "of torch": (
        b"ctorch._utils\nrebuild\n.",
        f"{PLAIN}, and it names 'torch._utils rebuild'; it holds tensors: {PICTURES}",
    ),
    "of Pillow": (
        b"cPIL.Image\nImage\n.",
        f"{PLAIN}, and it names 'PIL.Image Image'; it holds PIL images: {PICTURES}",
    ),
    "another encoding": (
        b"c_codecs\nencode\n\x8c\x01a\x8c\x05utf-8\x86R.",
        "the pickle encodes a text in another way than as Latin-1",
    ),
    "bytes beyond Latin-1": (
        b"c_codecs\nencode\nX\x01\0\1\0" + b"a" * MAX_TEXT + b"\xc4\x80"[:1] + b"\x8c\x06latin1\x86R.",
        "the pickle holds bytes that are no Latin-1",
    ),
    "an array of floats": (
        b"cnumpy\ndtype\n\x8c\x02f8\x85R.",
        f"the pickle holds NumPy's values of the type 'f8': {NUMPY}",
    ),
    "an array of something long": (
        b"cnumpy\ndtype\n\x8c\x0cfloat1234567\x85R.",
        f"the pickle holds NumPy's values of the type 'float123': {NUMPY}",
    ),
    "a table": (
        array_of(shape=b"K\x01K\x01\x86"),
        f"the pickle holds NumPy's arrays of other than one dimension: {NUMPY}",
    ),
    "an array of too many": (
        array_of(shape=b"M\x31\x75\x85"),
        f"the pickle holds an array of more than {MAX_STRINGS} values",
    ),
    "less data than texts": (array_of(shape=b"K\x02\x85"), BROKEN),
    "a dict as data": (array_of(b"O8", data=b"}"), BROKEN),
    "a scalar of objects": (
        b"cnumpy._core.multiarray\nscalar\ncnumpy\ndtype\n\x8c\x02O8\x85RC\x04a\0\0\0\x86R.",
        BROKEN,
    ),
    "a call without arguments": (b"cnumpy\ndtype\n)R.", BROKEN),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_refusal_says_what_is_wrong_with_the_pickle(name):
    """And what to send, where trainers are known to send something else."""
    body, detail = MALFORMED[name]
    with pytest.raises(Malformed) as refused:
        read_pickle(body, LIMIT)

    assert detail == refused.value.detail


def nested(depth):
    return b"]" * depth + b"a" * (depth - 1) + b"."


def nones(opcodes):
    """A list, of so many opcodes in all."""
    return b"(" + b"N" * (opcodes - 3) + b"l."


def values(count):
    """So many in all: the same list of 1,000 values again and again, and the rest."""
    times, rest = divmod(count - 1, 1001)
    return b"](](" + b"N" * 1000 + b"eq\0" + b"h\0" * (times - 1) + b"N" * rest + b"e."


def texts(length):
    """In two places: the same text counts in each of them."""
    return b"](\x8c" + bytes([length]) + b"a" * length + b"q\0" + b"h\0e."


LIMITS = {
    "depth": (nested, 32, "the pickle is nested more than 32 deep"),
    "opcodes": (nones, MAX_OPCODES, f"the pickle has more than {MAX_OPCODES} opcodes"),
    "values": (values, MAX_VALUES, f"the pickle holds more than {MAX_VALUES} values"),
    "bytes": (texts, 5, "the values of the pickle hold more than 10 bytes"),
    "a number of the memo": (
        lambda number: b"Np" + str(number).encode() + b"\n.",
        MAX_OPCODES - 1,
        f"the pickle gives a value a number above {MAX_OPCODES}",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_as_much_as_is_allowed_is_read_and_one_more_is_too_large(name):
    """The refusal names the limit."""
    make, most, detail = LIMITS[name]
    max_bytes = 10 if name == "bytes" else 8 * MAX_VALUES
    read_pickle(make(most), max_bytes)
    with pytest.raises(TooLarge) as refused:
        read_pickle(make(most + 1), max_bytes)

    assert detail == refused.value.detail


def test_a_number_below_nothing_is_no_number_of_the_memo():
    """Nothing is kept under it."""
    with pytest.raises(TooLarge):
        read_pickle(b"Np-1\n.", LIMIT)
    assert [None, None] == read_pickle(b"](Np0\ng0\ne.", LIMIT)


def test_the_longest_number_and_the_longest_line_are_read():
    """Of as many bytes as the longest text."""
    assert 0 == read_pickle(b"\x8b" + struct.pack("<i", MAX_TEXT) + bytes(MAX_TEXT) + b".", LIMIT)
    assert 1.0 == read_pickle(b"F1." + b"0" * (MAX_TEXT - 3) + b"\n.", LIMIT)


def test_the_longest_text_is_a_str_and_a_longer_one_stays_as_it_was_written():
    """Whoever may have a longer one decodes it."""
    longest, longer = (
        read_pickle(b"X" + struct.pack("<I", size) + b"a" * size + b".", LIMIT)
        for size in (MAX_TEXT, MAX_TEXT + 1)
    )

    assert "a" * MAX_TEXT == longest
    assert LongText(memoryview(b"a" * (MAX_TEXT + 1))) == longer


def test_the_longest_array_is_read():
    """One that has more is refused before its data is looked at."""
    data = b"B" + struct.pack("<I", 4 * MAX_STRINGS) + b"a\0\0\0" * MAX_STRINGS

    assert ["a"] * MAX_STRINGS == read_pickle(array_of(shape=b"M\x30\x75\x85", data=data), LIMIT)


def test_the_size_of_a_number_is_that_of_its_bits():
    """And eight bytes for what is no number with a length."""
    body = pickle.dumps([2**79, 0.5])

    assert [2**79, 0.5] == read_pickle(body, 18)
    with pytest.raises(TooLarge):
        read_pickle(body, 17)
