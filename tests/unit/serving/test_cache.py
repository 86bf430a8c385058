"""The cache of models' answers: what it keeps, what it never keeps, and how much memory that takes."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from models.core.calls import GenerateCall, ImageCall, LikelihoodCall, TextCall
from models.core.outcomes import Embedding, Likelihood
from models.families.fake.model import GREY
from models.images.image import Image
from service.serving.cache import ENTRY_BYTES, OutcomeCache, size_of

MODEL = ("vqa", "clip-flant5-xl@1", "float32")


def test_a_key_holds_everything_the_answer_depends_on():
    """Model, revision, dtype, image, question, answer, and where one ends and the next begins."""
    call = LikelihoodCall(Image(GREY.encoded, "d1"), "q", "a")
    calls = [
        (MODEL, call),
        *(((*MODEL[:n], "other", *MODEL[n + 1 :]), call) for n in range(3)),
        (MODEL, replace(call, image=Image(GREY.encoded, "d2"))),
        (MODEL, replace(call, question="q2")),
        (MODEL, replace(call, answer="a2")),
        (MODEL, replace(call, question="q', 'a", answer="")),
        (MODEL, ImageCall(Image(GREY.encoded, "d1"))),
        (MODEL, TextCall("d1")),
    ]
    keys = {call.key(model) for model, call in calls}

    assert len(calls) == len(keys)
    assert call.key(MODEL) == replace(call, image=Image.of(noise(), "d1")).key(MODEL)
    assert not GenerateCall("s", "u").cacheable  # question sets have a store of their own
    assert TextCall("\ud800").key(MODEL) != TextCall("\\ud800").key(MODEL)


def noise():
    return GREY.rgb.rotate(90)


def embedding(width=512):
    vector = np.random.default_rng(0).random(width, np.float32)
    return Embedding(vector)


def test_the_least_recently_used_entry_leaves_first():
    """Looking an entry up is using it."""
    one = ENTRY_BYTES + size_of(b"a") + size_of(embedding())
    cache = OutcomeCache(3 * one)
    for key in (b"a", b"b", b"c"):
        cache.keep(key, embedding())
    assert cache.get(b"a") is not None
    cache.keep(b"d", embedding())

    assert [True, False, True, True] == [cache.get(key) is not None for key in (b"a", b"b", b"c", b"d")]
    assert 3 * one == cache.bytes


def test_an_entry_that_fills_the_cache_to_the_last_byte_is_kept():
    """It fits."""
    one = ENTRY_BYTES + size_of(b"a") + size_of(embedding())
    fits, lacks_a_byte = OutcomeCache(one), OutcomeCache(one - 1)
    for cache in (fits, lacks_a_byte):
        cache.keep(b"a", embedding())

    assert (1, 0) == (len(fits), len(lacks_a_byte))


def test_only_a_cache_of_no_bytes_stores_nothing():
    """Misses of one that stores something are counted, however little fits."""
    assert [False, True] == [OutcomeCache(size).stores for size in (0, 1)]


def test_a_view_of_an_array_counts_with_the_memory_behind_it():
    """Python counts the memory of arrays that own it."""
    array = np.zeros(1000, np.float32)

    assert 4000 + size_of(array[:0]) == size_of(array[:])


def test_an_entry_kept_twice_counts_once_and_one_too_large_drives_nobody_out():
    """Neither breaks the count of bytes."""
    cache = OutcomeCache(10_000)
    for _ in range(2):
        cache.keep(b"a", embedding(100))
    assert (1, ENTRY_BYTES + size_of(b"a") + size_of(embedding(100))) == (len(cache), cache.bytes)
    cache.keep(b"b", embedding(10_000))
    assert [True, False] == [cache.get(key) is not None for key in (b"a", b"b")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda n: Embedding(np.full(768, n, np.float32)),
        lambda n: Likelihood((-n / 7, -n / 3), -n / 7, -n / 5),
    ],
)
def test_the_bytes_counted_are_the_bytes_taken(make):
    """Never fewer than Python allocates, and at most a third more."""
    cache = OutcomeCache(2**40)
    tracemalloc.start()
    for n in range(1, 5001):
        cache.keep(TextCall(str(n)).key(MODEL), make(n))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert taken <= cache.bytes <= taken * 4 / 3
