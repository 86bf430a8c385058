"""`stream`: results of one request as they come."""

import asyncio
import json
import signal
import threading
from itertools import count

import httpx2 as httpx
import pytest

from scoregate import Item, ScoregateError
from scoregate.errors import (
    BadImageError,
    LaneFullError,
    ModelChangedError,
    ServiceConnectionError,
    UnknownMetricError,
    WarnedError,
)
from tests.support.answers import problem, request_of
from tests.support.pictures import png
from tests.support.service import until

ITEMS = [Item(prompt=f"a square {number}", image=png(), id=str(number)) for number in range(3)]
DONE = {"done": True, "request_id": "r", "partial": False, "models": {}, "provenance": {}, "timings_ms": {}}


def line(index, metric="vqascore", **more):
    return {"index": index, "scores": {metric: index / 10}, **more}


def answer(*lines, pieces=1):
    """A response of these lines, which comes in several pieces."""
    content = b"".join(json.dumps(each).encode() + b"\n" for each in lines)
    size = len(content) // pieces or 1

    async def parts():
        for start in range(0, len(content), size):
            yield content[start : start + size]

    return httpx.Response(200, content=parts(), headers={"X-Request-Id": "r"})


@pytest.mark.parametrize("pieces", [1, 7])
def test_results_come_in_the_order_of_the_lines(answered, pieces):
    """However the connection cuts them; each has the index of its item."""
    seen = []

    def service(request):
        seen.append((request.url.path, request.url.query, request_of(request)["items"]))
        return answer(line(2), line(0, id="0"), line(1), DONE, pieces=pieces)

    results = list(answered(service).stream(ITEMS))

    assert [(2, 0.2), (0, 0.0), (1, 0.1)] == [(each.index, each.scores["vqascore"]) for each in results]
    assert ["r"] * 3 == [each.request_id for each in results]
    [(path, query, items)] = seen
    assert ("/score", b"stream=1", 3) == (path, query, len(items))


def test_a_picture_that_cannot_be_read_is_the_first_result(answered):
    """And the others keep their indices."""
    items = [ITEMS[0], Item(prompt="a square", image="nowhere.png", metrics=["dsg"]), ITEMS[1]]
    results = list(answered(lambda _: answer(line(1), line(0), DONE)).stream(items))

    assert [1, 2, 0] == [each.index for each in results]
    assert isinstance(results[0].errors["dsg"], BadImageError)


def test_nothing_is_sent_where_no_picture_can_be_read(answered):
    """There is no request without items."""
    sent = []

    assert [0] == [each.index for each in answered(sent.append).stream([("nowhere.png", "a")])]
    assert not sent


def test_a_warning_is_an_error_on_request(answered):
    """Each line has its own."""
    warned = line(0, warnings=["item 0, vqascore: it is cut"], warning_codes=[{"code": "cut", "item": 0}])
    plain = list(answered(lambda _: answer(warned, DONE)).stream(ITEMS[:1]))
    strict = list(answered(lambda _: answer(warned, DONE), strict=True).stream(ITEMS[:1]))

    assert ["cut"] == [each.code for each in plain[0].warnings]
    assert isinstance(strict[0].errors["vqascore"], WarnedError)


def test_a_warning_about_all_items_is_an_error_of_each_on_request(answered):
    """Such as a demo model's, which stands in each line."""
    demo = {"warnings": ["vqa is a demo model: …"], "warning_codes": [{"code": "demo_model"}]}
    lines = [line(0, **demo), line(1, **demo), DONE]

    plain = list(answered(lambda _: answer(*lines)).stream(ITEMS[:2]))
    assert [["demo_model"]] * 2 == [[notice.code for notice in each.warnings] for each in plain]
    for result in answered(lambda _: answer(*lines), strict=True).stream(ITEMS[:2]):
        assert isinstance(result.errors["vqascore"], WarnedError)


def test_what_is_busy_before_the_first_line_is_tried_again(answered):
    """As any call."""
    script = [problem(429, "lane_full"), answer(line(0), DONE)]

    assert 1 == len(list(answered(lambda _: script.pop(0)).stream(ITEMS[:1])))
    with pytest.raises(LaneFullError):
        list(answered(lambda _: problem(429, "lane_full"), retries=0).stream(ITEMS[:1]))
    with pytest.raises(UnknownMetricError):
        list(answered(lambda _: problem(422, "unknown_metric")).stream(ITEMS[:1]))


@pytest.mark.parametrize(
    ("lines", "kind", "why"),
    [
        ([line(0)], ServiceConnectionError, "cut off"),
        ([line(0), {"error": {"code": "model_changed", "detail": "x"}}], ModelChangedError, "x"),
        ([line(0), DONE], ScoregateError, "no result of item 1"),
        ([line(0), line(0)], ScoregateError, "item 0 is none, or is there twice"),
        ([line(0), line(7)], ScoregateError, "item 7 is none"),
        ([line(0), line(1, "dsg")], ScoregateError, "neither a number nor an error for vqascore"),
        ([line(0), [1]], ScoregateError, "unknown shape"),
    ],
)
def test_what_goes_wrong_after_a_line_is_raised_after_its_result(answered, lines, kind, why):
    """Nothing is tried again, since some results are out."""
    asked, found = [], []
    client = answered(lambda request: asked.append(1) or answer(*lines))

    with pytest.raises(kind, match=why):
        found.extend(each.index for each in client.stream(ITEMS[:2]))
    assert [0] == found
    assert [1] == asked


class Endless(httpx.AsyncByteStream):
    """
    The content of a response that ends when it is closed.

    Args:
        between: called between two lines.
    """

    closed = False

    def __init__(self, between=lambda: None):
        self._between = between

    async def __aiter__(self):
        for number in count():
            yield json.dumps(line(number)).encode() + b"\n"
            if waits := self._between():
                await waits

    async def aclose(self):
        self.closed = True


def test_who_leaves_early_closes_the_response(answered):
    """As with `break`."""
    content = Endless()
    for result in answered(lambda _: httpx.Response(200, stream=content)).stream(ITEMS):
        assert 0 == result.index
        break

    until(lambda: content.closed)


def test_a_stream_that_the_clients_own_thread_collects_is_closed(answered):
    """The garbage collector runs in any thread; one that waited for its own loop would never end."""
    content = Endless()
    client = answered(lambda _: httpx.Response(200, stream=content))
    streams = [client.stream(ITEMS)]
    next(streams[0])

    async def collected():
        streams.clear()

    client.portals.here().submit(collected()).result(60)
    until(lambda: content.closed)


def test_a_stream_that_is_left_after_its_client_was_closed_is_no_error(answered):
    """Its connection is closed already."""
    client = answered(lambda _: httpx.Response(200, stream=Endless()))
    results = client.stream(ITEMS)
    next(results)
    client.close()

    results.close()


def test_an_interrupted_stream_raises_the_interrupt(answered):
    """Ctrl-C while the next result is awaited; the response is closed."""

    def interrupt():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return asyncio.Event().wait()

    content = Endless(interrupt)
    results = answered(lambda _: httpx.Response(200, stream=content)).stream(ITEMS)

    with pytest.raises(KeyboardInterrupt):
        list(results)
    until(lambda: content.closed)


def test_time_of_the_caller_is_not_the_services(answered, waited):
    """Between two results the caller may work for longer than the timeout."""
    client = answered(lambda _: answer(line(0), line(1), line(2), DONE, pieces=4), timeout_s=5)
    found = []
    for result in client.stream(ITEMS):
        found.append(result.index)
        waited.append(60)

    assert [0, 1, 2] == found
