"""A client of several addresses: each a function, on a clock that the waits set forward."""

import asyncio
import re
from collections import Counter

import httpx2 as httpx
import pytest

from scoregate import Client
from scoregate.errors import LaneFullError, OverloadedError, ServiceConnectionError, UnknownMetricError
from scoregate.trainers import Reward
from tests.support.answers import numbered, problem, scored
from tests.support.pauses import Unpaused
from tests.support.pictures import png
from tests.unit.client.test_stream import DONE, answer, line

REFUSED = httpx.ConnectError("refused")


@pytest.fixture
def several(waited):
    """A client of the hosts of *answers*, each with its answer or with a function; and the hosts' calls."""
    made = []

    def make(answers, **settings):
        calls = []

        async def answered(request):
            calls.append(request.url.host)
            one = answers[request.url.host]
            if callable(one):
                one = one(request)
            if asyncio.iscoroutine(one):
                one = await one
            if isinstance(one, Exception):
                raise one
            return one

        urls = [f"http://{host}" for host in answers]
        made.append(Client(urls, transport=Unpaused(answered, waited), **settings))
        return made[-1], calls

    yield make
    for client in made:
        client.close()


def test_a_call_goes_to_another_address_without_a_wait(several, waited):
    """Whatever is wrong with the first, if it may pass."""
    for wrong in (REFUSED, httpx.ReadError("reset"), problem(503, "draining", retry_after_s=9)):
        client, calls = several({"a": wrong, "b": scored})
        for _ in range(10):
            assert 0.5 == client.score(png(), "x").value
        assert 10 == calls.count("b")
        assert calls.count("a") <= 1
    assert [] == waited


def test_a_dead_address_is_tried_again_after_its_rest(several, waited):
    """And gets requests as before when it is back."""
    answers = {"a": REFUSED, "b": scored}
    client, calls = several(answers)
    while "a" not in calls:
        client.score(png(), "x")
    answers["a"] = scored
    calls.clear()
    client.score(png(), "x")
    assert ["b"] == calls
    client.portals.here().run(asyncio.sleep(1.0))
    while "a" not in calls:
        client.score(png(), "x")


def test_an_error_of_the_request_is_raised_from_the_first_address(several):
    """The others would answer the same."""
    client, calls = several({"a": problem(422, "unknown_metric"), "b": problem(422, "unknown_metric")})
    with pytest.raises(UnknownMetricError):
        client.score(png(), "x")

    assert 1 == len(calls)


def test_when_all_are_busy_the_call_waits_for_the_first(several, waited):
    """Not for the longest."""
    client, calls = several(
        {
            "a": problem(429, "lane_full", retry_after_s=3),
            "b": problem(429, "lane_full", retry_after_s=20),
        },
        retries=1,
    )
    with pytest.raises(LaneFullError):
        client.score(png(), "x", timeout_s=30)

    assert {"a": 2, "b": 1} == Counter(calls)
    [wait] = waited
    assert 2.9 <= wait <= 3.75


def test_a_busy_address_is_no_reason_to_fail_while_another_may_come_back(several, waited):
    """A refused connection says nothing about when."""
    answers = {"a": problem(503, "overloaded", retry_after_s=50), "b": REFUSED}
    client, calls = several(answers, timeout_s=20)
    with pytest.raises((ServiceConnectionError, OverloadedError)):
        client.score(png(), "x")

    assert 5 == calls.count("b")
    assert 1 == calls.count("a")
    assert 4 == len(waited)


def test_retries_are_rounds_over_all_addresses(several, waited):
    """Without retries each address is tried once."""
    client, calls = several({"a": REFUSED, "b": REFUSED, "c": REFUSED}, retries=0)
    with pytest.raises(ServiceConnectionError):
        client.score(png(), "x")

    assert ["a", "b", "c"] == sorted(calls)
    assert [] == waited


def test_concurrent_requests_are_spread_evenly(several):
    """By the number that wait at each address."""
    gate = {}

    async def held(request):
        gate.setdefault("open", asyncio.Event())
        gate["count"] = gate.get("count", 0) + 1
        if gate["count"] == 8:
            gate["open"].set()
        await gate["open"].wait()
        return scored(request)

    client, calls = several({"a": held, "b": held})
    list(client.score_many([(png(), "x")] * 8, batch_size=1, concurrency=8))

    assert {"a": 4, "b": 4} == Counter(calls)


def test_each_item_has_one_result_from_one_address(several):
    """In the order of the items, though an address breaks connections all the time."""
    broken = Counter()

    def breaks(request):
        broken["a"] += 1
        return httpx.ReadError("reset") if broken["a"] % 2 else numbered(request)

    client, _ = several({"a": breaks, "b": numbered})
    results = list(client.score_many([(png(), f"x {number}") for number in range(50)], batch_size=3))

    assert [*map(float, range(50))] == [each.scores["vqascore"] for each in results]
    assert broken["a"]


def test_a_stream_goes_to_another_address_before_its_first_line_only(several):
    """Later its results are out, and the address rests."""

    def cut(request):
        async def parts():
            yield b'{"index": 0, "scores": {"vqascore": 0.0}}\n'
            raise httpx.ReadError("reset")

        return httpx.Response(200, content=parts())

    client, calls = several({"a": REFUSED, "b": lambda _: answer(line(0), line(1), DONE)})
    pairs = [(png(), "x")] * 2
    assert [0, 1] == [each.index for each in client.stream(pairs)]
    assert "b" == calls[-1]

    client, calls = several({"a": cut, "b": cut})
    found = []
    with pytest.raises(ServiceConnectionError):
        found += client.stream(pairs)
    assert 1 == len(calls)
    with pytest.raises(ServiceConnectionError):
        found += client.stream(pairs)
    assert {"a", "b"} == set(calls)


def test_a_stream_waits_at_its_address_until_its_last_line(several):
    """Other requests go elsewhere meanwhile."""
    client, calls = several({host: lambda _: answer(line(0), line(1), DONE, pieces=3) for host in "ab"})
    first = client.stream([(png(), "x")] * 2)
    next(first)
    for _ in range(5):
        list(client.stream([(png(), "x")] * 2))

    assert {calls[0]: 1, "ab".replace(calls[0], ""): 5} == Counter(calls)
    assert [1] == [each.index for each in first]


def test_ready_is_true_if_one_address_is(several):
    """And an error only if none answers."""
    ready = httpx.Response(200, json={"status": "ready"})
    waits = problem(503, "not_ready")
    for answers, found in (((waits, ready), True), ((REFUSED, ready), True), ((REFUSED, waits), False)):
        assert found is several(dict(zip("ab", answers, strict=True)))[0].ready()[0]
    with pytest.raises(ServiceConnectionError):
        several({"a": REFUSED, "b": REFUSED})[0].ready()


def test_a_model_is_changed_by_a_client_of_one_address(several):
    """Of several, no request is sent."""
    client, calls = several({"a": scored, "b": scored})
    for change in (client.load_model, client.offload_model, client.unload_model):
        with pytest.raises(ValueError, match="a client of one address"):
            change("clip")

    assert [] == calls


def test_a_reward_has_several_addresses(several, waited):
    """As a list, also pickled, or by a client.  The advice about its metrics is a GET, which fails here."""
    client, calls = several(
        {"a": REFUSED, "b": lambda sent: scored(sent) if sent.content else problem(404, "not_found")}
    )
    assert [0.5, 0.5] == [*Reward(client=client, logit=False)([png(), png()], ["x", "y"])]
    assert "b" in calls
    with pytest.raises(ValueError, match="must begin with http"):
        Reward(base_url=["http://a", "b"])
    assert "http://a,http://b" == Client(Reward(base_url=["http://a", "http://b"]).base_url).base_url


def test_a_stream_that_ends_well_clears_the_failures(several):
    """So a client that only streams leaves an address no longer after each failure."""
    script = [REFUSED, *(answer(line(0), DONE) for _ in range(4))]
    client, calls = several({"a": lambda _: script.pop(0), "b": REFUSED}, retries=8)
    item = [(png(), "x")]
    for _ in range(4):
        assert [0] == [each.index for each in client.stream(item)]

    first = next(each for [*each] in client._inner.connection._pools.values())[0]
    assert 5 == calls.count("a")
    assert 0 == first._failures


def test_an_outage_is_outlasted_where_a_line_about_it_is_taken(several, waited):
    """Whether connections are refused or reset, or the service is there again and still loads."""
    answers, said = {"a": scored}, []
    client, _ = several(answers, outage=said.append, timeout_s=600)
    client.score(png(), "x")
    for wrong in (REFUSED, httpx.ReadError("reset"), problem(503, "not_ready")):
        until = sum(waited) + 300
        answers["a"] = lambda _, wrong=wrong, until=until: wrong if sum(waited) < until else scored(_)
        assert 0.5 == client.score(png(), "x").value

    assert max(waited) <= 7.5
    assert 3 == len(said)
    assert re.fullmatch(r"connection_failed: .*refused; requests are retried for up to 59\d s", said[0])
    assert said[2].startswith("not_ready: ")


def test_an_outage_is_outlasted_until_the_deadline(several, waited):
    """The last attempt is before it."""
    answers, said = {"a": scored}, []
    client, _ = several(answers, outage=said.append, timeout_s=600)
    client.score(png(), "x")
    answers["a"] = REFUSED
    with pytest.raises(ServiceConnectionError):
        client.score(png(), "x")

    assert 590 <= sum(waited) < 600
    assert 1 == len(said)


def test_a_service_that_never_answered_is_given_up_after_the_retries(several, waited):
    """Its address may be wrong, which nobody wants to learn ten minutes later."""
    said = []
    client, calls = several({"a": REFUSED}, outage=said.append, timeout_s=600, retries=2)
    with pytest.raises(ServiceConnectionError):
        client.score(png(), "x")

    assert ([], 3) == (said, len(calls))
