"""One call: its time, its retries, and what it makes of answers that are none."""

import asyncio
import gzip
import json

import httpx2 as httpx
import pytest

from demo.process import free_port, url
from scoregate import AsyncClient, Client, Frames, ScoregateError
from scoregate.connection import backoff_s, of_the_service_ms
from scoregate.errors import (
    BadImageError,
    InvalidError,
    OverloadedError,
    QuotaExceededError,
    ServiceConnectionError,
    ServiceTimeoutError,
)
from scoregate.http import retry_after_s
from scoregate.transport import HttpTransport
from tests.support.answers import problem, request_of, scored
from tests.support.leaps import leap
from tests.support.pauses import Unpaused
from tests.support.pictures import png


def script(*answers):
    """The answers one after the other, the last one again and again; an error is raised."""
    left = list(answers)

    def answer(request):
        one = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(one, Exception):
            raise one
        return scored(request) if one is None else one

    return answer


PASSING = {
    "a full lane": problem(429, "lane_full", retry_after_s=0.2),
    "a quota": problem(429, "quota_exceeded", retry_after_s=0.2),
    "bulk is full": problem(503, "overloaded"),
    "a proxy that is full": httpx.Response(503, text="<h1>busy</h1>"),
    "a proxy whose service restarts": httpx.Response(502, text="<h1>Bad Gateway</h1>"),
    "a proxy that waited in vain": httpx.Response(504, text="<h1>Gateway Time-out</h1>"),
    "a gateway with codes of its own": httpx.Response(503, json={"code": 503, "detail": "no upstream"}),
    "a gateway that writes problems": httpx.Response(502, json={"title": "Bad Gateway", "detail": "none"}),
    "nobody listens": httpx.ConnectError("refused"),
    "a connection that breaks": httpx.ReadError("reset"),
    "a connection closed before it was used": httpx.RemoteProtocolError("closed"),
}
STAYING = {
    "a bad request": (problem(422, "invalid"), InvalidError),
    "a fault of the service": (problem(500, "internal"), ScoregateError),
    "a failed question LLM": (problem(502, "question_llm_failed"), ScoregateError),
    "no score in time": (problem(504, "deadline_exceeded"), ScoregateError),
    "a redirect": (httpx.Response(302, headers={"location": "http://elsewhere"}), ScoregateError),
    "a 200 that is not JSON": (httpx.Response(200, text="<h1>welcome</h1>"), ScoregateError),
}


@pytest.mark.parametrize("first", PASSING.values(), ids=PASSING)
def test_what_may_pass_is_asked_again(answered, waited, first):
    """Once more is enough here."""
    assert 0.5 == answered(script(first, None)).score(png(), "x").value
    assert 1 == len(waited)


@pytest.mark.parametrize(("answer", "kind"), STAYING.values(), ids=STAYING)
def test_what_stays_is_an_error_at_once(answered, waited, answer, kind):
    """Asking again would not help, or would do the work twice."""
    with pytest.raises(kind):
        answered(script(answer, None)).score(png(), "x")

    assert [] == waited


def test_the_last_attempt_s_error_is_raised(answered, waited):
    """After as many retries as were asked for."""
    with pytest.raises(OverloadedError, match="it is overloaded") as raised:
        answered(script(problem(503, "overloaded")), retries=2).score(png(), "x")

    assert 2 == len(waited)
    assert (503, "r") == (raised.value.status, raised.value.request_id)


def test_a_service_that_is_away_is_named(waited):
    """By its address."""
    away = url(free_port(0))
    transport = Unpaused(None, waited)
    with (
        Client(away, retries=1, transport=transport) as client,
        pytest.raises(ServiceConnectionError, match=away),
    ):
        client.score(png(), "x")

    assert 1 == len(waited)


def test_nobody_waits_longer_than_the_call_may_take(answered, waited):
    """The refusal comes at once, and says how long the wait would be."""
    refusal = problem(429, "quota_exceeded", retry_after_s=30)
    with pytest.raises(QuotaExceededError) as raised:
        answered(script(refusal), timeout_s=20).score(png(), "x")

    assert [] == waited
    assert 30 == raised.value.retry_after_s


def test_the_header_counts_where_the_answer_says_nothing(answered):
    """A proxy's refusal has nothing else."""
    refusal = httpx.Response(503, headers={"Retry-After": "7"})
    with pytest.raises(ScoregateError) as raised:
        answered(script(refusal), retries=0).score(png(), "x")

    assert 7 == raised.value.retry_after_s


def test_a_call_ends_when_its_time_is_over(answered):
    """Although the service never answers."""

    async def never(request):
        await asyncio.Event().wait()

    with pytest.raises(ServiceTimeoutError, match="http://test/score"):
        answered(never).score(png(), "x", timeout_s=0.05)


@pytest.mark.parametrize(
    ("left", "told"), [(0.01, 9), (10.0, 9_500), (60.0, 59_000), (3600.0, 600_000), (0.0, 1), (-1.0, 1)]
)
def test_the_service_gets_a_little_less_than_what_is_left(left, told):
    """So that what it has by then still comes in time; within what it takes."""
    assert told == of_the_service_ms(left)


def test_each_attempt_tells_what_is_left_then(answered):
    """Of the time of the whole call."""
    told = []

    def answer(request):
        told.append(int(request.headers["X-Request-Timeout-Ms"]))
        return problem(503, "overloaded") if len(told) == 1 else scored(request)

    answered(answer, timeout_s=20).score(png(), "x")

    assert 19_000 >= told[0] > told[1] + 45  # 95 % of the least wait, 50 ms


@pytest.mark.parametrize(("attempt", "least", "most"), [(1, 0.05, 0.15), (2, 0.1, 0.3), (4, 0.4, 1.2)])
def test_waits_double_and_differ(attempt, least, most):
    """Between half and one and a half of a tenth of a second, doubled each time."""
    found = {backoff_s(attempt) for _ in range(100)}

    assert least <= min(found) < max(found) <= most
    assert len(found) > 50


def test_nobody_comes_back_before_the_service_said(answered, waited):
    """And not all at once."""
    for _ in range(20):
        answered(script(problem(429, "lane_full", retry_after_s=3.0), None)).score(png(), "x")

    assert 20 == len(waited)
    assert 2.9 <= min(waited) < max(waited) <= 3.75  # less by what passed since the response


@pytest.mark.anyio
async def test_a_call_that_is_cancelled_while_it_is_refused_is_not_tried_again(waited):
    """The refusal arrives in the same turn of the event loop."""

    async def answer(request):
        call.cancel()
        return problem(503, "overloaded")

    client = AsyncClient("http://test", transport=Unpaused(answer, waited))
    call = asyncio.create_task(client.score(png(), "x"))
    with pytest.raises(asyncio.CancelledError):
        await call
    await client.close()

    assert [] == waited


@pytest.mark.anyio
async def test_a_pause_lasts_as_long_by_the_clock_of_the_loop():
    """Which is the clock of deadlines, too."""
    transport = HttpTransport((), "", 1, None)
    pause, began = asyncio.create_task(transport.pause(30)), transport.time()
    for seconds in (0, 29):
        leap(seconds)
        await asyncio.sleep(0.001)
        assert not pause.done()
    leap(1)
    await pause

    assert 30 <= transport.time() - began


def test_a_date_to_come_back_is_not_read():
    """Clocks differ; the backoff is enough."""
    assert 12.0 == retry_after_s({"retry-after": "12"})
    assert retry_after_s({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}) is None


WRONG = {
    "too few results": {"results": []},
    "another item": {"results": [{"index": 1, "scores": {"vqascore": 0.5}}]},
    "no score and no error": {"results": [{"index": 0, "scores": {}}]},
    "a score that is text": {"results": [{"index": 0, "scores": {"vqascore": "0.5"}}]},
    "a score that is null": {"results": [{"index": 0, "scores": {"vqascore": None}}]},
    "a score that is true": {"results": [{"index": 0, "scores": {"vqascore": True}}]},
    "no results": {"ok": True},
    "a list": [],
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
def test_an_answer_that_is_none_is_an_error_and_no_score(answered, content):
    """A proxy, or another service, may answer 200 with anything."""
    with pytest.raises(ScoregateError, match="the service's answer"):
        answered(script(httpx.Response(200, json=content))).score(png(), "x")


def test_a_number_that_is_not_finite_is_an_error(answered):
    """Python's JSON reads NaN."""
    text = '{"results": [{"index": 0, "scores": {"vqascore": NaN}}]}'
    with pytest.raises(ScoregateError, match="neither a number nor an error"):
        answered(script(httpx.Response(200, text=text))).score(png(), "x")


def test_an_error_without_a_text_is_named_by_its_class(answered):
    """An exception is always true, so `exc or ...` never names it."""

    def answer(request):
        raise httpx.ReadError("")

    with pytest.raises(ServiceConnectionError, match=r"^http://test: ReadError$"):
        answered(answer, retries=0).score(png(), "x")

    class Broken:
        def read(self):
            raise OSError

    with pytest.raises(BadImageError, match=r"cannot read the file: OSError$"):
        answered(scored).score(Broken(), "x")


def test_a_request_says_what_was_asked(answered):
    """Field by field; what was not asked is left to the service."""
    sent = []

    def answer(request):
        sent.append(request_of(request))
        return scored(request)

    client = answered(answer, allow_urls=True)
    client.score("http://example.org/a.png", "x")
    client.score(
        Frames([png(), png("blue")]),
        "x",
        "dsg",
        options={"dsg": {"samples": 2}},
        explain=True,
        priority="bulk",
    )

    url = {"prompt": "x", "image": {"url": "http://example.org/a.png"}}
    assert {"items": [url], "metrics": ["vqascore"], "priority": "interactive"} == sent[0]
    assert [{"part": "image0"}, {"part": "image1"}] == sent[1].pop("items")[0]["image"]
    assert {
        "metrics": ["dsg"],
        "options": {"dsg": {"samples": 2}},
        "explain": True,
        "priority": "bulk",
    } == sent[1]


def test_a_large_answer_may_be_compressed(answered):
    """As proxies do."""

    def answer(request):
        content = gzip.compress(json.dumps(scored(request).json()).encode())
        return httpx.Response(200, content=content, headers={"content-encoding": "gzip"})

    assert 0.5 == answered(answer).score(png(), "x").value
