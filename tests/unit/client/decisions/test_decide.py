"""`decide` of the client: its request, its parts, and the fallback without an answer."""

import asyncio
import pickle

import httpx2 as httpx
import pytest

from scoregate import AsyncClient, Client, Item, ScoregateError
from scoregate.connection import MAX_FAILURES, TRIAL_S, Breaker, CircuitOpenError
from scoregate.errors import BadImageError, ServiceConnectionError, UnknownPolicyError, WarnedError
from tests.support.answers import request_of
from tests.support.clocks import Clock
from tests.support.pauses import Unpaused
from tests.support.pictures import png

ID = "show@3f2a90c1d4e5"


def entry_of(index, item, decision="accept"):
    """A decision with one score."""
    return {
        "index": index,
        "scores": {"vqascore": 0.9},
        "decision": decision,
        "because": "vqascore 0.9 >= 0.5",
        "skipped": ["ocr"],
        "decision_id": f"{index:032x}",
        **{name: item[name] for name in ("id", "group") if name in item},
    }


def answer_of(request, **more):
    """Accept every item, but one whose file is empty."""
    body = request_of(request)
    entries = [entry_of(index, item) for index, item in enumerate(body["items"])]
    for entry, item in zip(entries, body["items"], strict=True):
        if item["image"] == {"part": "empty"}:
            error = {"code": "image_undecodable", "detail": "there are no bytes"}
            entry |= {"decision": "reject", "scores": {}, "errors": {"vqascore": error}}
    return {"request_id": "r", "policy": ID, "decisions": entries, "models": {}, **more}


def decided(request):
    """The response to a request."""
    return httpx.Response(200, json=answer_of(request))


def test_a_decision_has_what_the_service_decided(answered):
    """With its reason, its scores, and its id in the log."""
    one = answered(decided).decide(png(), "a cat")

    assert one.accepted
    assert ("accept", "vqascore 0.9 >= 0.5") == (one.decision, one.because)
    assert {"vqascore": 0.9} == one.scores
    assert ("ocr",) == one.skipped
    assert (ID, f"{0:032x}") == (one.policy, one.decision_id)
    assert one == pickle.loads(pickle.dumps(one))


def test_items_are_sent_with_their_groups(answered):
    """And the number of each group that is accepted."""
    sent = []

    def answer(request):
        sent.append(request_of(request))
        return decided(request)

    items = [Item(prompt="a cat", image=png(), id=str(n), group="cats") for n in range(2)]
    made = answered(answer).decide_items(items, "best", keep=2, explain=True)

    [body] = sent
    assert ("best", 2, True) == (body["policy"], body["keep"], body["explain"])
    assert ["cats", "cats"] == [item["group"] for item in body["items"]]
    assert ["0", "1"] == [each.id for each in made.accepted]


def test_of_several_policies_the_first_decides(answered):
    """The others stand beside it, from the same scores."""

    def answer(request):
        content = answer_of(request)
        [entry] = content["decisions"]
        keys = ("decision", "because", "skipped", "decision_id")
        own = {name: entry.pop(name) for name in keys}
        entry["policies"] = {"old": own, "new": {**own, "decision": "review"}}
        return httpx.Response(200, json={**content, "policy": ["old@1", "new@2"]})

    one = answered(answer).decide(png(), "a cat", ["old", "new"])

    assert ("old@1", "accept") == (one.policy, one.decision)
    assert {"old": "accept", "new": "review"} == {name: each.decision for name, each in one.policies.items()}
    assert [{"vqascore": 0.9}] * 2 == [each.scores for each in one.policies.values()]


@pytest.mark.parametrize("fallback", [None, "accept"])
def test_a_picture_that_cannot_be_encoded_is_decided_by_the_policy(answered, fallback):
    """It is sent empty, so it has its row in the log; its error says what is wrong with it."""
    items = [("nowhere.png", "a cat"), (png(), "a cat")]
    broken, whole = answered(decided).decide_items(items, fallback=fallback)

    assert ("reject", "accept") == (broken.decision, whole.decision)
    assert isinstance(broken.errors["vqascore"], BadImageError)
    assert "nowhere.png" in broken.errors["vqascore"].detail


def refused(request):
    """No connection."""
    raise httpx.ConnectError("refused")


@pytest.mark.parametrize("fallback", ["accept", "review", "reject"])
@pytest.mark.parametrize(
    "answer",
    [
        refused,
        lambda _: httpx.Response(503, json={"code": "not_ready", "detail": "vqa is loading"}),
        lambda _: httpx.Response(500, json={"code": "internal", "detail": "a fault"}),
        lambda _: httpx.Response(429, json={"code": "quota_exceeded", "detail": "the quota is used up"}),
        lambda _: httpx.Response(502, text="<h1>Bad Gateway</h1>"),
        lambda _: httpx.Response(404, text="default backend - 404"),  # of an ingress without a pod
        lambda _: httpx.Response(200, text="no JSON"),
        lambda _: httpx.Response(200, json={"policy": ID, "decisions": []}),
        lambda request: httpx.Response(
            200, json={**answer_of(request), "decisions": [entry_of(0, {}, "maybe")]}
        ),
    ],
)
def test_with_a_fallback_no_fault_of_the_service_is_raised(answered, answer, fallback):
    """The reason begins with the word, and has the error's code."""
    client = answered(answer, retries=0)
    one = client.decide(png(), "a cat", fallback=fallback)

    assert (fallback, "") == (one.decision, one.decision_id)
    assert one.because.startswith("fallback: ")
    with pytest.raises(ScoregateError):
        client.decide(png(), "a cat")


def test_the_reason_of_a_fallback_is_the_service_s_deadline_not_the_client_s_timeout(answered):
    """Both are a `TimeoutError`."""
    late = httpx.Response(504, json={"code": "deadline_exceeded", "detail": "before it was scored"})
    one = answered(lambda _: late, retries=0).decide(png(), "a cat", fallback="review")

    assert one.because.startswith("fallback: deadline_exceeded: ")


def test_a_hanging_service_costs_the_timeout_and_no_more(answered):
    """Then the fallback decides; with the client's own retries, too."""

    async def never(request):
        await asyncio.Event().wait()

    one = answered(never).decide(png(), "a cat", timeout_s=0.05, fallback="review")

    assert "review" == one.decision
    assert one.because.startswith("fallback: timeout: ")


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (422, "unknown_policy", UnknownPolicyError),
        (401, "unauthorized", ScoregateError),
        (404, "not_found", ScoregateError),
    ],
)
def test_a_fault_of_the_request_is_raised_with_a_fallback_too(answered, status, code, kind):
    """A wrong name of a policy would otherwise decide about everything, and nobody would see it."""

    def answer(_):
        return httpx.Response(status, json={"code": code, "detail": "no"})

    with pytest.raises(kind) as raised:
        answered(answer).decide(png(), "a cat", fallback="accept")
    assert code == raised.value.code


def test_strict_clients_raise_the_warnings(answered):
    """As of scores."""

    def answer(request):
        return httpx.Response(200, json=answer_of(request, warnings=["vqa is a demo model"]))

    assert ["vqa is a demo model"] == [*answered(answer).decide(png(), "a cat").warnings]
    with pytest.raises(WarnedError, match="demo model"):
        answered(answer, strict=True).decide(png(), "a cat", fallback="accept")


def test_the_fallback_must_be_a_decision(answered):
    """No other word decides what users see."""
    with pytest.raises(ValueError, match="fallback is one of reject, review, accept, not 'open'"):
        answered(decided).decide(png(), "a cat", fallback="open")


def test_no_broken_picture_is_accepted_while_the_service_is_away(answered):
    """What cannot be read here is rejected, and of a group no more are accepted than it keeps."""
    items = [
        Item(prompt="a cat", image="nowhere.png", group="a"),
        *(Item(prompt="a cat", image=png(), group="a") for _ in range(3)),
        Item(prompt="a cat", image=png()),
    ]
    made = answered(refused, retries=0).decide_items(items, keep=2, fallback="accept")

    assert ["reject", "accept", "accept", "reject", "accept"] == [each.decision for each in made]
    assert made[0].because.startswith("fallback: unreadable: bad_image")
    assert "fallback: group: 2 accepted before it" == made[3].because


def test_a_fallback_of_several_policies_is_the_same_decision_of_each(answered):
    """So that code that reads them runs."""
    one = answered(refused, retries=0).decide(png(), "a cat", ["old", "new"], fallback="review")

    assert {"old": "review", "new": "review"} == {name: each.decision for name, each in one.policies.items()}


class Timed(Unpaused):
    """A transport whose time is that of a test's clock."""

    def __init__(self, answer, clock):
        super().__init__(answer)
        self.clock = clock

    def time(self):
        return self.clock()


def test_after_five_failures_one_call_a_second_is_sent():
    """The others are answered at once; after one success all are sent."""
    clock, sent, away = Clock(), [], True

    def answer(request):
        sent.append(request)
        return refused(request) if away else decided(request)

    def decide():
        return client.decide(png(), "a cat", fallback="reject").because

    with Client("http://test", transport=Timed(answer, clock), retries=0) as client:
        for _ in range(MAX_FAILURES + 3):
            because = decide()
        assert MAX_FAILURES == len(sent)
        assert because.startswith("fallback: the last 5 calls failed: connection_failed: ")
        clock.advance(TRIAL_S)
        decide(), decide()
        assert MAX_FAILURES + 1 == len(sent)
        clock.advance(TRIAL_S)
        away = False
        assert ["vqascore 0.9 >= 0.5"] * 3 == [decide() for _ in range(3)]
        assert MAX_FAILURES + 4 == len(sent)


def test_calls_without_a_fallback_are_always_sent(answered):
    """They neither count nor wait."""
    client = answered(refused, retries=0)
    for _ in range(MAX_FAILURES + 1):
        client.decide(png(), "a cat", fallback="reject")

    for _ in range(2):
        with pytest.raises(ServiceConnectionError):
            client.decide(png(), "a cat")


def test_a_success_between_failures_begins_the_count_anew():
    """Only failures in a row count."""
    breaker = Breaker(Clock())
    for _ in range(MAX_FAILURES - 1):
        breaker.failed("x")
    breaker.succeeded()
    breaker.failed("x")

    breaker.check()


def test_late_failures_do_not_postpone_the_next_trial():
    """Calls that were under way fail one after the other while the service is away."""
    breaker = Breaker(clock := Clock())
    for _ in range(MAX_FAILURES):
        breaker.failed("x")
    clock.advance(TRIAL_S / 2)
    breaker.failed("x")
    with pytest.raises(CircuitOpenError):
        breaker.check()
    clock.advance(TRIAL_S / 2)

    breaker.check()
    with pytest.raises(CircuitOpenError):
        breaker.check()


def test_a_client_that_travels_leaves_its_failures_behind():
    """Another process has its own way to the service."""
    client = AsyncClient("http://test", transport=Timed(refused, Clock()))
    for _ in range(MAX_FAILURES):
        client._breaker.failed("x")

    pickle.loads(pickle.dumps(client))._breaker.check()


def test_the_policies_are_listed_by_name(answered):
    """As the service has them."""
    listed = {"show": {"id": ID, "accept": "vqascore >= 0.5"}}

    assert listed == answered(lambda _: httpx.Response(200, json={"policies": listed})).policies()


def test_a_label_is_stored_by_the_id_of_its_decision(answered):
    """The answer is 202."""
    sent = []

    def answer(request):
        sent.append((request.url.path, request.content))
        return httpx.Response(202, json={"request_id": "r"})

    answered(answer).label(f"{1:032x}", good=False, who="ann")

    assert [(f"/decisions/{1:032x}/label", b'{"good": false, "who": "ann"}')] == sent
