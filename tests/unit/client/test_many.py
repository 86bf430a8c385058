"""`score_many`: any number of items, in order, some of them broken, in runs that may be stopped."""

import asyncio
import itertools
import signal
import threading

import httpx2 as httpx
import numpy as np
import pytest

from scoregate import AsyncClient
from scoregate.errors import BadImageError, InvalidError
from scoregate.many import MAX_BYTES
from tests.support.answers import numbered, problem, request_of, scored
from tests.support.pictures import png
from tests.support.service import until

PAIRS = [(png(), f"a square {number}") for number in range(23)]


@pytest.mark.parametrize(("concurrency", "batch"), [(1, 1), (3, 4), (8, 32)])
def test_results_come_in_order(answered, concurrency, batch):
    """Whichever request is answered first; the later ones are, here."""

    async def answer(request):
        prompt = request_of(request)["items"][0]["prompt"]
        for _ in range(40 - int(prompt.rpartition(" ")[2])):
            await asyncio.sleep(0)
        return numbered(request)

    results = list(answered(answer).score_many(PAIRS, concurrency=concurrency, batch_size=batch))

    assert [(number, number) for number in range(23)] == [
        (result.index, result.score("vqascore")) for result in results
    ]


def test_it_asks_in_the_lane_for_bulk_and_as_was_said(answered):
    """Each request has the metrics, the options and its part of the items."""
    sent = []

    def answer(request):
        sent.append(request_of(request))
        return scored(request)

    options = {"vqascore": {"output": "logit"}}
    results = list(
        answered(answer).score_many(iter(PAIRS), ["vqascore", "dsg"], options=options, batch_size=10)
    )

    assert [10, 10, 3] == sorted((len(request["items"]) for request in sent), reverse=True)
    assert all("bulk" == each["priority"] and options == each["options"] for each in sent)
    assert all({"vqascore", "dsg"} == result.scores.keys() for result in results)


def test_pairs_are_read_as_they_are_needed(answered):
    """An endless source gives its first results, and what was begun is dropped with the iterator."""
    source = ((png(), f"a square {number}") for number in itertools.count())
    found = answered(numbered).score_many(source, batch_size=2, concurrency=2)

    assert list(range(10)) == [int(next(found).score("vqascore")) for _ in range(10)]
    found.close()
    assert int(next(source)[1].rpartition(" ")[2]) < 10 + 2 * (2 * 2 + 2)


def test_an_interrupted_run_cancels_all_requests_that_are_under_way(answered):
    """Ctrl-C while the first of them is awaited."""
    under_way, cancelled = [], []

    async def answer(request):
        under_way.append(request)
        if len(under_way) == 3:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(request)

    with pytest.raises(KeyboardInterrupt):
        list(answered(answer).score_many(PAIRS, batch_size=1, concurrency=3))
    until(lambda: 3 == len(cancelled))


def test_no_more_requests_are_under_way_than_was_said(answered):
    """Counted where they arrive; the first ones are held until there are as many."""
    under_way, most, full = 0, 0, asyncio.Event()

    async def answer(request):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == 3:
            full.set()
        await full.wait()
        await asyncio.sleep(0)
        under_way -= 1
        return scored(request)

    list(answered(answer).score_many(PAIRS, batch_size=1, concurrency=3))

    assert 3 == most


def test_what_cannot_be_sent_is_that_item_s_error(answered):
    """A missing file and a picture of a wrong shape; their neighbours have scores."""
    broken = {3: "nowhere.png", 4: np.zeros((2, 2, 2)), 9: None}
    pairs = [(broken.get(number, image), prompt) for number, (image, prompt) in enumerate(PAIRS)]
    results = list(answered(numbered).score_many(pairs, ["vqascore"], batch_size=5))

    assert [*range(23)] == [result.index for result in results]
    assert broken.keys() == {result.index for result in results if result.errors}
    assert all(result.score("vqascore") == result.index for result in results if not result.errors)
    with pytest.raises(BadImageError, match=r"item 3, vqascore: image: cannot read 'nowhere.png'"):
        results[3].score("vqascore")


def test_what_the_service_refuses_by_its_place_is_that_item_s_error(answered):
    """The others of its request are asked again, without it."""

    def answer(request):
        items = request_of(request)["items"]
        faults = [
            {"pointer": f"/items/{index}/prompt", "code": "string_too_long", "detail": "is too long"}
            for index, item in enumerate(items)
            if item["prompt"].endswith("3")
        ]
        return problem(422, "invalid", errors=faults[:1]) if faults else numbered(request)

    results = list(answered(answer).score_many(PAIRS, batch_size=16))

    assert {3, 13} == {result.index for result in results if result.errors}
    assert all(result.score("vqascore") == result.index for result in results if not result.errors)
    with pytest.raises(InvalidError, match="item 13, vqascore: prompt: is too long"):
        results[13].score("vqascore")


FATAL = {
    "a metric that is not served": problem(422, "unknown_metric", errors=[{"pointer": "/metrics/0"}]),
    "a mistake with no place": problem(422, "invalid"),
    "an item that was not sent": problem(422, "invalid", errors=[{"pointer": "/items/99/prompt"}]),
    "no key": problem(401, "unauthorized"),
    "a fault of the service": problem(500, "internal"),
}


@pytest.mark.parametrize("refusal", FATAL.values(), ids=FATAL)
def test_what_concerns_all_ends_the_run(answered, refusal):
    """With the error, after one answer: it would be the same for every request."""
    with pytest.raises(Exception, match=f"it is {refusal.json()['code']}"):
        list(answered(lambda request: refusal).score_many(PAIRS, concurrency=1))


def test_a_request_stays_below_the_largest_body(answered):
    """Pictures of many bytes go in more requests than were said."""
    sizes = []

    def answer(request):
        sizes.append(len(request.content))
        return numbered(request)

    half = MAX_BYTES // 2
    pairs = [(bytes([number]) * half, prompt) for number, (_, prompt) in enumerate(PAIRS[:5])]
    results = list(answered(answer).score_many(pairs, batch_size=32, concurrency=1))

    assert list(range(5)) == [result.score("vqascore") for result in results]
    assert [3, 2] == [size // half for size in sizes]


def test_neither_concurrency_nor_batch_may_be_none(answered):
    """Nothing would ever be asked."""
    for wrong in ({"concurrency": 0}, {"batch_size": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            list(answered(scored).score_many(PAIRS, **wrong))
    with pytest.raises(TypeError, match="or a tuple"):
        list(answered(scored).score_many(["a.png"]))


def test_progress_is_told_on_stderr(answered, capsys):
    """At the end at least; how many, of how many, and how many failed."""
    list(answered(scored).score_many([*PAIRS, (None, "x")], progress=True))

    assert "24/24" in capsys.readouterr().err
    list(answered(scored).score_many(iter([*PAIRS, (None, "x")]), progress=True))
    shown = capsys.readouterr()
    assert "24it" in shown.err
    assert "1 with errors" in shown.err
    assert "" == shown.out


@pytest.mark.anyio
async def test_an_event_loop_gets_the_same_results():
    """Awaited; the loop goes on with other work meanwhile."""
    thread = threading.get_ident()

    class Array(np.ndarray):
        """Says in which thread it is encoded."""

        def __array_finalize__(self, other):
            threads.add(threading.get_ident())

    threads: set[int] = set()
    pairs = [(np.zeros((4, 4, 3), np.uint8).view(Array), prompt) for _, prompt in PAIRS]
    threads.clear()
    async with AsyncClient("http://test", transport=httpx.MockTransport(numbered)) as client:
        results = [result async for result in client.score_many(pairs, batch_size=5)]

    assert list(range(23)) == [result.score("vqascore") for result in results]
    assert threads
    assert thread not in threads
