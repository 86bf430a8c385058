"""NumPy's texts in pickles: arrays and scalars are read as lists and strings."""

import pickle
import re
import tracemalloc

import numpy as np
import pytest

from service.core.errors import Malformed, TooLarge
from service.web.dialects.pickled.reader import read_pickle

MB = 2**20
LIMIT = 64 * MB


def of_numpy(body, version):
    """What NumPy *version* writes, which differs in a name of its own, and in nothing else."""
    return renamed(body, b"numpy._core", b"numpy.core") if version == 1 else body


def renamed(body, name, other):
    """The pickle with another name of a module, whichever opcode names it."""
    for module in (b".multiarray", b".numeric"):
        before, after = name + module, other + module
        body = body.replace(b"c" + before + b"\n", b"c" + after + b"\n")
        body = body.replace(b"\x8c" + bytes([len(before)]) + before, b"\x8c" + bytes([len(after)]) + after)
    return body


def framed(body):
    """Without the lengths of frames, which `renamed` does not change."""
    return re.sub(rb"\x95.{8}", b"", body, flags=re.DOTALL)


TEXTS = ["a red cube", "", "ein Würfel", "an X", "猫と犬", "\U0001f600 " * 40]
ARRAYS = {
    "texts": lambda: np.array(TEXTS),
    "a slice of texts, as np.array_split gives it": lambda: np.array_split(TEXTS, 2)[1],
    "texts that cannot be written": lambda: writable(np.array(TEXTS), write=False),
    "every other text": lambda: np.array(TEXTS)[::2],
    "the other byte order": lambda: np.array(TEXTS).astype(">U80"),
    "objects": lambda: np.array(TEXTS, object),
    "no texts": lambda: np.array([], str)[:0],
    "metadata": lambda: np.array_split([{"tag": "counting", "include": [{"class": "cat"}]}] * 3, 2)[0],
}


def writable(array, *, write):
    array.setflags(write=write)
    return array


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_arrays_of_texts_and_of_objects_are_read_as_lists(name, version, protocol):
    """As any protocol and either version of NumPy writes them."""
    array = ARRAYS[name]()
    body = pickle.dumps({"prompts": array, "again": array}, protocol)
    found = read_pickle(of_numpy(framed(body) if version == 1 else body, version), LIMIT)

    assert {"prompts": array.tolist(), "again": array.tolist()} == found


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_text_of_numpy_is_a_text(protocol):
    """The entries of an array, one by one."""
    assert TEXTS == read_pickle(pickle.dumps([*np.array(TEXTS)], protocol), LIMIT)


def array_of(dtype=b"U1", shape=b"K\x01\x85", data=b"C\x04a\0\0\0", order=b"<"):
    """An array as protocol 4 writes it, with parts of one's own."""
    return (
        b"\x80\x04cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\0\x85C\x01btR(K\x01"
        + shape
        + b"cnumpy\ndtype\n(\x8c"
        + bytes([len(dtype)])
        + dtype
        + b"\x89\x88tR(K\x03\x8c\x01"
        + order
        + b"NNNtb"
        + b"\x89"
        + data
        + b"tb."
    )


BROKEN_ARRAYS = {
    "a billion texts of no length": array_of(b"U0", b"J\x00\x00\x00\x40\x85", b"C\x00"),
    "a billion empty objects": array_of(b"O8", b"J\x00\x00\x00\x40\x85", b"]"),
    "less data than texts": array_of(shape=b"K\x02\x85"),
    "less than nothing": array_of(shape=b"J\xff\xff\xff\xff\x85", data=b"C\x00"),
    "no code points": array_of(data=b"C\x04\xff\xff\xff\xff"),
    "a text as data": array_of(data=b"\x8c\x04aaaa"),
    "a dict as data": array_of(b"O8", data=b"}"),
    "no shape": array_of(shape=b"N"),
    "a shape of texts": array_of(shape=b"\x8c\x01a\x85"),
    "a name as a value": b"\x80\x04cnumpy\nndarray\nK\x01b.",
    "a call without arguments": b"\x80\x04cnumpy\ndtype\n)R.",
    "a call of a text": b"\x80\x04\x8c\x01a)R.",
    "a dtype twice": b"\x80\x04cnumpy\ndtype\n\x8c\x02U1\x85RNb.",
    "another encoding": b"\x80\x04c_codecs\nencode\n\x8c\x01a\x8c\x06rot_13\x86R.",
    "bytes that are none": b"\x80\x04c_codecs\nencode\n\x8c\x03\xe7\x8c\xab\x8c\x06latin1\x86R.",
}


@pytest.mark.parametrize("name", BROKEN_ARRAYS)
def test_an_array_that_numpy_never_wrote_is_refused(name):
    """At no cost."""
    tracemalloc.start()
    try:
        with pytest.raises(Malformed):
            read_pickle(BROKEN_ARRAYS[name], LIMIT)
        assert tracemalloc.get_traced_memory()[1] < MB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("order", "data"), [(b"<", b"a\0\0\0"), (b"=", b"a\0\0\0"), (b"|", b"a\0\0\0"), (b">", b"\0\0\0a")]
)
def test_the_array_that_is_broken_in_tests_can_be_read_whole(order, data):
    """In either byte order; one that is not named is that of the usual machines."""
    assert ["a"] == read_pickle(array_of(order=order, data=b"C\x04" + data), LIMIT)


def test_the_texts_of_arrays_are_counted_like_others():
    """In each place where the array stands."""
    array = np.array(["a"] * 1000)
    body = pickle.dumps([array] * 90, 4)

    assert 90 == len(read_pickle(body, 90 * 4100))
    with pytest.raises(TooLarge, match="bytes"):
        read_pickle(body, 90 * 4000)
    with pytest.raises(TooLarge, match="values"):
        read_pickle(pickle.dumps([np.array(["a"] * 20_000)] * 60, 4), LIMIT)
