"""Pickles that are drawn: what is written is read, and anything else is refused by an error of ours."""

import pickle
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.errors import ScoregateError
from service.web.dialects.pickled.app import written
from service.web.dialects.pickled.reader import read_pickle

LIMIT = 64 * 2**20
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
MANY = settings(max_examples=5 * settings.default.max_examples)  # 3,000 with `--hypothesis-profile=thorough`

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()

BYTES = st.binary() | st.builds(bytearray, st.binary())


def plain(scalars):
    """Values of which nothing but dicts, lists and tuples is made."""
    return st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.text(), inner) | st.lists(inner, max_size=5).map(tuple)
        ),
        max_leaves=20,
    )


@given(plain(SCALARS), st.sampled_from(PROTOCOLS))
def test_plain_values_are_read_as_they_were_written(value, protocol):
    assert value == read_pickle(pickle.dumps(value, protocol), LIMIT)


@given(plain(SCALARS | BYTES))
def test_bytes_are_read_where_they_are_written_without_a_call(value):
    """From protocol 3 on, and a bytearray from 5 on."""
    found = read_pickle(pickle.dumps(value, 5), LIMIT)

    assert value == found
    assert repr(value) == repr(found)


@given(st.binary(max_size=200))
@MANY
def test_any_bytes_are_read_or_refused(body):
    """No exception but our own."""
    with suppress(ScoregateError):
        read_pickle(body, LIMIT)


OPCODES = [bytes([code]) for code in b"(.0]})aelstd\x85\x86\x87\x94\x88N"]
OPCODES += [b"K\x01", b"q\x00", b"q\x01", b"h\x00", b"h\x01", b"X\x01\0\0\0a"]


@given(st.lists(st.sampled_from(OPCODES)))
@MANY
def test_any_opcodes_are_read_or_refused(opcodes):
    """Where the standard library reads them too, both read the same."""
    body = b"".join(opcodes) + b"."
    try:
        found = read_pickle(body, LIMIT)
    except ScoregateError:
        return
    assert pickle.loads(body) == found


CALLING = [b"cnumpy\ndtype\n", b"cnumpy\nndarray\n", b"c_codecs\nencode\n", b"c__builtin__\nbytes\n"]
CALLING += [b"cnumpy._core.multiarray\n_reconstruct\n", b"cnumpy.core.multiarray\nscalar\n"]
CALLING += [b"cnumpy._core.numeric\n_frombuffer\n", b"R", b"b", b"\x8c\x02U1", b"\x8c\x02O8", b"\x8c\x01<"]
CALLING += [b"\x8c\x06latin1", b"C\x04a\0\0\0", b")"]


@given(st.lists(st.sampled_from(OPCODES + CALLING)))
@MANY
def test_any_calls_are_read_or_refused(opcodes):
    """No exception but our own, whatever is called with what."""
    with suppress(ScoregateError):
        read_pickle(b"".join(opcodes) + b".", LIMIT)


@given(st.dictionaries(st.text(), st.lists(st.floats(allow_nan=False)) | st.text()))
def test_answers_are_what_pickle_reads(answer):
    clean = {key: value for key, value in answer.items() if _encodes(key) and _encodes(value)}

    assert clean == pickle.loads(written(clean))
    assert clean == read_pickle(written(clean), LIMIT)


def _encodes(value):
    return not isinstance(value, str) or value == value.encode("utf-8", "replace").decode("utf-8")
