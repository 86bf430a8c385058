"""The client: what needs no service."""

import asyncio
import inspect
import pickle
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import httpx as other_httpx
import httpx2 as httpx
import pytest

import scoregate
from scoregate import AsyncClient, Client, Score, ScoregateError
from scoregate.errors import ServiceConnectionError
from tests.support.answers import scored
from tests.support.pictures import png


def test_a_service_that_is_not_ready_says_why(answered):
    """Without retries and without an exception: that is an answer, too."""
    detail = {"detail": "vqa is loading", "code": "not_ready"}
    asked = []

    def answer(request):
        asked.append(request)
        return scoregate.http.httpx.Response(503, json=detail)

    assert (False, detail) == answered(answer).ready()
    assert 1 == len(asked)


@pytest.mark.parametrize(
    "page", [{"text": "<h1>Gateway Time-out</h1>"}, {"json": {"message": "no upstream"}}]
)
def test_a_proxy_s_page_is_no_word_of_the_service_s(answered, page):
    """Nobody knows whether it is ready."""
    with pytest.raises(ServiceConnectionError, match="a proxy answered 504 in place of http://test/readyz"):
        answered(lambda request: httpx.Response(504, **page)).ready()


def test_a_client_that_is_closed_leaves_nobody_waiting(answered):
    """A thread that has asked gets an error, not silence."""
    asked = threading.Event()

    async def never(request):
        asked.set()
        await asyncio.Event().wait()

    client = answered(never)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(client.score, png(), "x")
        asked.wait(60)
        client.close()
        with pytest.raises(ServiceConnectionError, match="closed meanwhile"):
            waiting.result(60)


def test_both_clients_have_the_same_methods():
    """With the same arguments; what one returns, the other has awaited."""

    def methods(kind):
        return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}

    shared = methods(Client)
    assert {"score", "score_items", "score_many", "rank", "questions", "models", "health"} <= shared
    assert shared <= methods(AsyncClient)
    for name in [*shared, "__init__"]:
        ours, theirs = inspect.signature(getattr(Client, name)), inspect.signature(getattr(AsyncClient, name))
        assert ours.parameters == theirs.parameters, name


def test_results_travel_between_processes(answered):
    """As a DataLoader's workers return them."""
    score = answered(scored).score(png(), "x")
    report = answered(scored).score_items([(png(), "x")])

    assert score == pickle.loads(pickle.dumps(score))
    assert isinstance(score, Score)
    assert list(report) == list(pickle.loads(pickle.dumps(report)))


def test_a_transport_of_another_library_is_refused_by_its_name():
    """httpx's classes have the same names, and would fail at the first response."""
    with pytest.raises(TypeError, match=r"^transport must be of httpx2, and is a httpx\.MockTransport$"):
        Client("http://test", transport=other_httpx.MockTransport(scored))
    with pytest.raises(TypeError, match=r"\.HTTPTransport$"):
        AsyncClient("http://test", transport=httpx.HTTPTransport())


def test_an_error_has_a_short_traceback(answered):
    """Without causes, and without the frames of the loop that it comes from."""

    def unreachable(request):
        raise httpx.ConnectError("no route")

    client = answered(unreachable, retries=0)
    for picture in (png(), "nowhere.png"):
        with pytest.raises(ScoregateError) as raised:
            client.score(picture, "a square")

        assert len(traceback.format_exception(raised.value)) <= 4
