"""Answers of a server that is broken or means harm: errors of ours, within limits and in time."""

import asyncio
import gzip
import json
import tracemalloc

import httpx2 as httpx
import pytest

from scoregate import AsyncClient, Item, ScoregateError
from scoregate.errors import LaneFullError, ServiceTimeoutError
from scoregate.transport import MAX_BYTES, HttpTransport
from tests.support.answers import problem, scored
from tests.support.pictures import png

MB = 2**20


class Pieces:
    """A body that is made piece by piece, as often as somebody reads one."""

    def __init__(self, piece: bytes, most: int) -> None:
        self.piece, self.most, self.read = piece, most, 0

    async def __aiter__(self):
        while self.read < self.most:
            self.read += 1
            yield self.piece
            await asyncio.sleep(0)


def packed(content: bytes, encoding: str):
    """A 200 whose body comes in one piece, and is not read before the client does."""

    def answer(request):
        return httpx.Response(200, content=Pieces(content, 1), headers={"content-encoding": encoding})

    return answer


def test_the_connections_of_a_loop_that_has_ended_are_not_kept():
    """Each loop has its own; those of an earlier one go with its addresses."""
    client = AsyncClient(
        "http://a", transport=httpx.MockTransport(lambda request: httpx.Response(200, json={}))
    )
    before = len(HttpTransport._pools)
    for _ in range(3):
        asyncio.run(client.models())

    assert 1 == len(HttpTransport._pools) - before


ways = pytest.mark.parametrize(
    "read",
    [
        lambda client: client.score(png(), "x"),
        lambda client: list(client.stream([Item(prompt="x", image=png())])),
    ],
    ids=["whole", "stream"],
)


@ways
def test_no_more_of_an_answer_is_read_than_the_limit(answered, read):
    """However much would come."""
    body = Pieces(b" " * MB, 1000)
    with pytest.raises(ScoregateError, match=f"longer than {MAX_BYTES} bytes"):
        read(answered(lambda request: httpx.Response(200, content=body)))

    assert MAX_BYTES // MB + 1 == body.read


@pytest.mark.slow
@ways
def test_no_more_is_unpacked_than_the_limit(answered, read):
    """128 MB of blanks are 128 kB in gzip."""
    bomb = gzip.compress(b" " * (128 * MB), 1)
    client = answered(packed(bomb, "gzip"))
    tracemalloc.start()
    try:
        with pytest.raises(ScoregateError, match=f"longer than {MAX_BYTES} bytes"):
            read(client)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 3 * MAX_BYTES


def test_an_answer_that_was_packed_once_is_read(answered):
    """Only gzip is asked for."""
    asked = []

    def answer(request):
        asked.append(request.headers["accept-encoding"])
        return packed(gzip.compress(scored(request).content), "gzip")(request)

    assert 0.5 == answered(answer).score(png(), "x").value
    assert ["gzip"] == asked


@ways
@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "deflate"])
def test_an_encoding_that_was_not_asked_for_is_an_error(answered, encoding, read):
    """Two layers of gzip are a bomb in a bomb."""
    content = gzip.compress(gzip.compress(b"{}"))
    with pytest.raises(ScoregateError, match=f"encoding '{encoding}' is not accepted"):
        read(answered(packed(content, encoding)))


@ways
def test_an_answer_that_is_packed_wrong_is_an_error(answered, read):
    """It says gzip, and is not."""
    with pytest.raises(ScoregateError, match=r"cannot read what http://test/score\S* answered"):
        read(answered(packed(b"{}", "gzip")))


def test_the_time_of_a_call_holds_while_its_answer_comes(answered):
    """A body without an end, in pieces of a byte."""
    client = answered(lambda request: httpx.Response(200, content=Pieces(b" ", 10**9)))
    with pytest.raises(ServiceTimeoutError):
        client.score(png(), "x", timeout_s=0.05)


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "text", [DEEP, f'{{"results": {DEEP}}}', DEEP[:50_000]], ids=["all", "within", "open"]
)
def test_json_that_is_nested_too_deeply_is_an_error(answered, text):
    """Python cannot read it."""
    with pytest.raises(ScoregateError, match="without JSON"):
        answered(lambda request: httpx.Response(200, text=text)).score(png(), "x")


def result(**more):
    """An answer about one item, which differs from a right one in *more*."""
    return {"results": [{"index": 0, "scores": {"vqascore": 0.5}, **more}]}


WRONG = {
    "a score beyond all floats": result(scores={"vqascore": 10**400}),
    "details that are text": result(details="x"),
    "a cache that is a number": result(cache=5),
    "errors that are text": result(errors={"vqascore": "boom"}),
    "scores that are null": result(scores=None),
    "models that are a number": result() | {"models": 5},
    "times that are text": result() | {"timings_ms": "x"},
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
def test_an_answer_of_another_shape_is_an_error(answered, content):
    """And never one of Python's."""
    with pytest.raises(ScoregateError, match="the service's answer"):
        answered(lambda request: httpx.Response(200, json=content)).score(png(), "x")


def test_a_place_in_a_ranking_is_a_whole_number(answered):
    """JSON has numbers that are none of ours."""
    text = '{"ranking": [{"index": 1e999, "score": 0.5, "accepted": true}]}'
    with pytest.raises(ScoregateError, match="unknown shape"):
        answered(lambda request: httpx.Response(200, text=text)).rank("x", [png()])


@pytest.mark.slow
@pytest.mark.parametrize(
    "told",
    ["x", -5, None, [1], 10**400, float("nan"), float("inf")],
    ids=["text", "less than nothing", "null", "a list", "beyond all floats", "NaN", "infinity"],
)
def test_a_wait_that_is_no_number_of_seconds_is_none(answered, told):
    """The backoff is enough."""
    content = json.dumps({"code": "lane_full", "detail": "full", "retry_after_s": told})
    client = answered(lambda request: httpx.Response(429, text=content), retries=1)
    with pytest.raises(LaneFullError) as raised:
        client.score(png(), "x")

    assert raised.value.retry_after_s is None


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (5, []),
        (["x", None], []),
        ([{"pointer": 3}], [{"pointer": "3", "code": "", "detail": ""}]),
        ([{"pointer": "/a", "valid": ["b"]}], [{"pointer": "/a", "code": "", "detail": "", "valid": ["b"]}]),
    ],
)
def test_a_wrong_place_always_has_its_texts(answered, told, kept):
    """Whatever the answer says beside them is kept."""
    client = answered(lambda request: problem(422, "invalid", errors=told))
    with pytest.raises(ScoregateError) as raised:
        client.score(png(), "x")

    assert kept == list(raised.value.errors)


def test_a_place_beyond_all_items_is_that_of_none(answered):
    """Python refuses to read a number of 5,000 digits."""
    refusal = problem(422, "invalid", errors=[{"pointer": "/items/" + "9" * 5000, "detail": "no"}])
    with pytest.raises(ScoregateError, match="it is invalid"):
        list(answered(lambda request: refusal).score_many([(png(), "x")]))
