"""The trace of a request, as an OpenTelemetry collector gets it."""

import asyncio

import pytest

from service.core.errors import ModelFault
from tests.support.app import depths
from tests.support.fake_openai import said
from tests.support.pictures import b64, item, png

pytestmark = pytest.mark.anyio

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADERS = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
OTHER_TRACE = "1af7651916cd43dd8448eb211c80319c"
OTHER = {"traceparent": f"00-{OTHER_TRACE}-{CALLER}-01"}
SET = '{"questions": [{"id": 1, "kind": "entity", "text": "Is there a square?", "depends_on": []}]}'


async def score(client, *metrics, prompt="a red square", headers=None, **more):
    body = {"items": [item(prompt)], "metrics": list(metrics or ["vqascore"]), **more}
    return await client.post("/score", json=body, headers=headers or {})


async def waits(client, model, lane, calls):
    """Return once so many calls of *model* wait in *lane*."""
    while depths(client, model)[lane] != calls:
        await asyncio.sleep(0.001)


async def test_a_request_is_a_tree_of_its_stages(traced, collector):
    """Request, decoding, metrics, questions, queue, model, batch and fold, each within the one around it."""
    async with traced() as client:
        assert 200 == (await score(client, "vqascore", "dsg")).status_code

    by_id = {span.id: span for span in collector.spans}
    tree = {(span.name, by_id[span.parent].name if span.parent else "") for span in collector.spans}
    inside = {(name, "metric") for name in ("questions", "queue", "model", "batch")}
    of_the_llm = {(name, "questions") for name in ("queue", "model", "batch")}
    of_the_request = {(name, "POST /score") for name in ("decode", "metric", "fold")}
    assert {("POST /score", "")} | of_the_request | inside | of_the_llm == tree
    assert 1 == len({span.trace for span in collector.spans})
    assert {"scoregate"} == collector.services
    for span in collector.spans:
        around = by_id.get(span.parent, span)
        slack = 10_000_000  # two clocks are read one after the other
        assert around.began - slack <= span.began <= span.ended <= around.ended + slack, span.name


async def test_spans_say_what_they_are_of(traced, collector):
    """Route, status, lane and request id; metric; model and number of calls; how questions were found."""
    async with traced() as client:
        answer = await score(client, "dsg", priority="bulk")

    [request] = collector.named("POST /score")
    assert {
        "http.request.method": "POST",
        "http.route": "/score",
        "http.response.status_code": 200,
        "scoregate.lane": "bulk",
        "scoregate.items": 1,
        "scoregate.request_id": answer.json()["request_id"],
    } == request.attributes
    assert [{"scoregate.metric": "dsg"}] == [span.attributes for span in collector.named("metric")]
    [questions] = collector.named("questions")
    assert ("dsg", "miss") == (
        questions.attributes["scoregate.style"],
        questions.attributes["scoregate.found"],
    )
    assert {("questions", 1), ("vqa", 1)} == {
        (span.attributes["scoregate.model"], span.attributes["scoregate.calls"])
        for span in collector.named("model")
    }


async def test_a_callers_trace_goes_on(traced, collector):
    """The request is a part of the span that `traceparent` names."""
    async with traced() as client:
        await score(client, headers=HEADERS)

    [request] = collector.named("POST /score")
    assert (TRACE, CALLER) == (request.trace, request.parent)
    assert {TRACE} == {span.trace for span in collector.spans}


@pytest.mark.parametrize(
    "header",
    [
        "nonsense",
        f"00-{TRACE}-{CALLER}",
        f"ff-{TRACE}-{CALLER}-01",
        f"00-{'0' * 32}-{CALLER}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{CALLER}-01",
    ],
)
async def test_a_header_that_is_not_valid_is_ignored(traced, collector, header):
    """The request has a trace of its own."""
    async with traced() as client:
        assert 200 == (await score(client, headers={"traceparent": header})).status_code

    [request] = collector.named("POST /score")
    assert ("", False) == (request.parent, request.trace == TRACE)


async def test_a_batch_links_to_all_whom_it_serves(traced, collector, fakes):
    """It lies in one trace; the metrics' spans of all are its links, and their models' spans link to it."""
    vqa = fakes["vqa"]
    async with traced() as client:
        vqa.hold.clear()
        first = asyncio.create_task(score(client, prompt="held"))
        while not vqa.held:
            await asyncio.sleep(0)
        others = [
            asyncio.create_task(score(client, prompt=prompt, headers=headers))
            for prompt, headers in (("a cat", HEADERS), ("a dog", OTHER))
        ]
        await waits(client, "vqa", "interactive", 2)
        vqa.hold.set()
        await asyncio.gather(first, *others)

    [batch] = [span for span in collector.named("batch") if span.attributes["scoregate.calls"] == 2]
    metrics = {(span.trace, span.id) for span in collector.named("metric")}
    traces = {TRACE, OTHER_TRACE}
    assert set(batch.links) <= metrics
    assert traces == {trace for trace, _ in batch.links}
    models = [span for span in collector.named("model") if span.trace in traces]
    assert [((batch.trace, batch.id),)] * 2 == [span.links for span in models]


async def test_the_server_of_a_model_gets_the_span_that_asks_it(traced_with_llm, collector, server):
    """vLLM's own spans are parts of ours."""
    server.chat = lambda body: (200, said(SET))
    async with traced_with_llm() as client:
        assert 200 == (await score(client, "dsg", headers=HEADERS)).status_code

    [questions] = collector.named("questions")
    [sent] = [headers["traceparent"] for headers in server.headers]
    assert (TRACE, questions.id) == tuple(sent.split("-")[1:3])
    assert {"queue", "model"} == {span.name for span in collector.spans if span.parent == questions.id}


async def test_who_joins_the_writing_of_questions_links_to_who_began_it(traced, collector, fakes):
    """The LLM's call is in the first one's trace."""
    llm = fakes["questions"]
    async with traced() as client:
        llm.hold.clear()
        before = asyncio.create_task(score(client, "dsg", prompt="a busy bee", priority="bulk"))
        while not llm.held:
            await asyncio.sleep(0)
        first = asyncio.create_task(score(client, "dsg", headers=HEADERS, priority="bulk"))
        await waits(client, "questions", "bulk", 1)
        second = asyncio.create_task(score(client, "dsg", headers=OTHER))
        await waits(client, "questions", "interactive", 1)  # the first one's call, which it promoted
        llm.hold.set()
        await asyncio.gather(before, first, second)

    spans = {span.trace: span for span in collector.named("questions")}
    began, joined = spans[TRACE], spans[OTHER_TRACE]
    assert ("miss", "coalesced") == (
        began.attributes["scoregate.found"],
        joined.attributes["scoregate.found"],
    )
    assert ((TRACE, began.id),) == joined.links


async def test_a_metric_that_fails_says_with_which_error(traced, collector, fakes):
    """The request itself is answered."""
    fakes["vqa"].fault = lambda call: RuntimeError("no") if "bad" in getattr(call, "question", "") else None
    async with traced() as client:
        assert 200 == (await score(client, "vqascore", "clipscore", prompt="bad")).status_code

    metrics = {span.attributes["scoregate.metric"]: span for span in collector.named("metric")}
    assert (True, ModelFault.code) == (
        metrics["vqascore"].failed,
        metrics["vqascore"].attributes["error.type"],
    )
    assert not metrics["clipscore"].failed
    [request] = collector.named("POST /score")
    assert not request.failed


async def test_a_request_that_is_refused_has_a_span_too(traced, collector):
    """A caller's mistake is no error of the service."""
    async with traced() as client:
        assert 422 == (await score(client, "none")).status_code
        assert (
            415
            == (await client.post("/score", content=b"{", headers={"Content-Type": "text/plain"})).status_code
        )

    assert [422, 415] == [span.attributes["http.response.status_code"] for span in collector.spans]
    assert not any(span.failed for span in collector.spans)


async def test_a_cached_answer_asks_no_model(traced, collector):
    """The second request has neither queue nor batch."""
    async with traced() as client:
        for _ in range(2):
            await score(client)

    assert 2 == len(collector.named("metric"))
    assert 1 == len(collector.named("batch"))
    assert 1 == len(collector.named("queue"))


async def test_a_call_that_no_batch_took_has_neither_queue_nor_model(traced, collector):
    """The picture is broken behind its header."""
    async with traced() as client:
        body = {"items": [item(image=b64(png(size=(64, 64))[:-30]))], "metrics": ["vqascore"]}
        assert 200 == (await client.post("/score", json=body)).status_code

    [metric] = collector.named("metric")
    assert "image_undecodable" == metric.attributes["error.type"]
    assert not collector.named("queue") + collector.named("model")


async def test_probes_and_scrapes_have_no_trace(traced, collector):
    """They would be most of them."""
    async with traced() as client:
        for path in ("/livez", "/readyz", "/metrics", "/models"):
            await client.get(path, headers=HEADERS)

    assert [] == collector.spans


async def test_nothing_that_a_caller_wrote_is_in_a_trace(traced, collector, fakes):
    """No prompt, no question, no image, no id of an item."""
    fakes["vqa"].fault = lambda call: (
        RuntimeError("zebra") if "zebra" in getattr(call, "question", "") else None
    )
    image = b64(png("red"))
    async with traced() as client:
        for prompt in ("a zebra", "a yak"):
            body = {
                "items": [{"prompt": prompt, "image": image, "id": "gnu"}],
                "metrics": ["vqascore", "dsg"],
            }
            await client.post("/score", json=body)

    sent = b"".join(collector.bodies)
    assert b"POST /score" in sent
    for word in (b"zebra", b"yak", b"gnu", image[:40].encode()):
        assert word not in sent
