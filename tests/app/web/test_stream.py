"""`POST /score?stream=1`: each item's result as soon as it is there."""

import asyncio
import json
from dataclasses import replace

import pytest

from service.scoring.engine import Engine
from tests.support.app import service_of
from tests.support.devices import until_idle
from tests.support.films import film
from tests.support.handles import until
from tests.support.leaps import out_of_time
from tests.support.pictures import b64, item
from tests.support.refusals import refused

pytestmark = pytest.mark.anyio

PATH = "/score?stream=1"
ITEMS = [item(f"a red square {number}", id=str(number)) for number in range(5)]


def lines_of(answer):
    return [json.loads(line) for line in answer.text.splitlines()]


def bodies_of(sent):
    """The lines of a response's messages."""
    return [json.loads(each["body"]) for each in sent if each["type"] == "http.response.body"]


@pytest.mark.shared
async def test_the_lines_together_are_the_answer(serve):
    """A line for each item, as in `results`, and the last one has all else."""
    body = {"items": [*ITEMS, item("hello")], "metrics": ["vqascore", "dsg"], "explain": True}
    async with serve() as client:
        whole = (await client.post("/score", json=body)).json()
        answer = await client.post(PATH, json=body)

    *results, end = lines_of(answer)
    assert "application/x-ndjson" == answer.headers["content-type"]
    assert "no" == answer.headers["x-accel-buffering"]
    own = ("cache", "warnings", "warning_codes")
    same = [
        {name: each[name] for name in each if name not in own}
        for each in sorted(results, key=lambda each: each["index"])
    ]
    assert [{name: each[name] for name in each if name != "cache"} for each in whole["results"]] == same
    assert end["done"] is True
    assert whole.keys() - {"results"} == end.keys() - {"done"}
    assert [True, whole["models"], whole["provenance"]] == [
        end[n] for n in ("partial", "models", "provenance")
    ]
    assert answer.headers["x-request-id"] == end["request_id"]


async def test_a_result_is_sent_before_the_others_are_there(serve, fakes):
    """The request's second item waits for a model that the first one does not use."""
    sent = []

    async def send(message):
        sent.append(message)
        if message["type"] == "http.response.body":
            fakes["questions"].hold.set()  # the first line frees the second

    async with serve() as client:
        fakes["questions"].hold.clear()
        items = [item("a cat", metrics=["vqascore"]), item("a red dog", metrics=["dsg"])]
        await asyncio.wait_for(call(client._transport.app, {"items": items}, send), 10)

    bodies = bodies_of(sent)
    assert [0, 1] == [each["index"] for each in bodies[:2]]
    assert "done" in bodies[2]


async def test_a_caller_who_does_not_read_gets_no_further_line(serve, fakes):
    """The next line is sent when the connection has taken the one before, and none is lost."""
    goes_on, sent = asyncio.Event(), []

    async def send(message):
        sent.append(message)
        if message["type"] == "http.response.body":
            await goes_on.wait()

    async with serve() as client:
        handle = service_of(client).runtime.handles["vqa"]
        calling = asyncio.ensure_future(call(client._transport.app, {"items": ITEMS}, send))
        async with asyncio.timeout(10):
            await until(lambda: len(fakes["vqa"].calls) == 5 and not handle.under_way)
        await until_idle()
        held = sum(each["type"] == "http.response.body" for each in sent)
        goes_on.set()
        await asyncio.wait_for(calling, 10)

    bodies = bodies_of(sent)
    assert held <= 1
    assert {0, 1, 2, 3, 4} == {each["index"] for each in bodies[:-1]}
    assert bodies[-1]["done"]


class Noted(Engine):
    """An engine that notes when a request has all its scores."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.has_scored = asyncio.Event()

    async def score_once(self, *arguments):
        report = await super().score_once(*arguments)
        self.has_scored.set()
        return report


@pytest.mark.parametrize("parts", [{"engine": Noted}])
async def test_a_readers_pace_holds_no_place(serve):
    """All items are scored, and nothing of the request waits for a model, while not one line is read."""
    goes_on, sent = asyncio.Event(), []
    items = [item(f"a red square {number}") for number in range(60)]

    async def send(message):
        sent.append(message)
        if message["type"] == "http.response.body":
            await goes_on.wait()

    async with serve() as client:
        service = service_of(client)
        calling = asyncio.ensure_future(call(client._transport.app, {"items": items}, send))
        await asyncio.wait_for(service.engine.has_scored.wait(), 10)
        held = service.memory.held
        assert 1 == sum(each["type"] == "http.response.body" for each in sent)
        goes_on.set()
        await asyncio.wait_for(calling, 10)

    bodies = [each["body"] for each in sent if each["type"] == "http.response.body"]
    assert len(bodies) == len(items) + 1
    assert held >= sum(map(len, bodies[:-1]))
    assert 0 == service.memory.held


async def test_a_stream_whose_unread_lines_have_no_memory_ends_with_that_error(serve, fakes):
    """A refusal that counts, behind the lines that had room; the models are free."""
    sent, questions = [], fakes["questions"].hold

    async with serve() as client:
        service = service_of(client)

        async def send(message):
            sent.append(message)
            if message["type"] == "http.response.body" and not questions.is_set():
                service.memory.held += service.memory.total
                questions.set()

        questions.clear()
        items = [item("a cat"), *(item(f"a red dog {n}", metrics=["dsg"]) for n in range(4))]
        await asyncio.wait_for(call(client._transport.app, {"items": items}, send), 10)
        service.memory.held -= service.memory.total
        metrics = (await client.get("/metrics")).text

    first, end = bodies_of(sent)
    assert (0, "memory_full") == (first["index"], end["error"]["code"])
    assert end["error"]["retry_after_s"] > 0
    assert 'scoregate_rejections_total{reason="memory_full"} 1.0' in metrics
    assert 0 == service.memory.held


@pytest.mark.parametrize("count", [1, 3])
async def test_a_caller_who_does_not_read_is_left_soon_after_the_deadline(serve, caplog, count):
    """It counts as one who disconnected, without an error in the log; its lines hold no memory afterwards."""
    sent, reading = [], asyncio.Event()

    async def send(message):
        sent.append(message)
        if message["type"] == "http.response.body":
            reading.set()
            await asyncio.Event().wait()

    async with serve() as client:
        await out_of_time(call(client._transport.app, {"items": ITEMS[:count]}, send), reading.is_set)
        held, metrics = service_of(client).memory.held, (await client.get("/metrics")).text
        again = await client.post("/score", json={"items": ITEMS})

    assert 1 == sum(each["type"] == "http.response.body" for each in sent)
    assert 'scoregate_requests_total{code="499",route="/score"} 1.0' in metrics
    assert [] == [each for each in caplog.records if each.levelname == "ERROR"]
    assert 0 == held
    assert not again.json()["partial"]


@pytest.mark.parametrize("path", ["/score", PATH])
async def test_a_request_whose_items_are_all_refused_counts_as_a_rejection(serve, path):
    """Once, whether the response has its status or its lines have the errors."""
    async with serve() as client:
        service_of(client).runtime.handles["questions"].backend.presence.change("unloaded")
        answer = await client.post(path, json={"items": ITEMS, "metrics": ["dsg"]})
        metrics = (await client.get("/metrics")).text

    assert "not_ready" in answer.text
    assert 'scoregate_rejections_total{reason="not_ready"} 1.0' in metrics


async def call(app, body, send):
    """Call the app as a server does; the caller stays."""
    content, stays = json.dumps(body).encode(), asyncio.Event()
    messages = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive():
        if messages:
            return messages.pop()
        await stays.wait()

    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    scope = {"type": "http", "method": "POST", "path": "/score", "query_string": b"stream=1"}
    await app({**scope, "headers": headers, "raw_path": b"/score", "app": app}, receive, send)


@pytest.mark.shared
async def test_a_line_has_the_warnings_of_its_item(serve):
    """With its index; the last line has all of them."""
    film_of_two = item(image=b64(film()))
    async with serve() as client:
        answer = await client.post(PATH, json={"items": [ITEMS[0], film_of_two]})

    *results, end = lines_of(answer)
    [warned] = [each for each in results if "warnings" in each]
    [code] = warned["warning_codes"]
    assert (1, 1, "frames_ignored") == (warned["index"], code["item"], code["code"])
    assert warned["warnings"] == end["warnings"]


async def test_each_line_has_the_warnings_about_all_items(serve, fakes):
    """A caller of a stream may refuse scores of demo models as any other."""
    async with serve(models={name: {"family": "fake"} for name in fakes}) as client:
        answer = await client.post(PATH, json={"items": [*ITEMS[:2], item(image="bm8=")]})

    *results, end = lines_of(answer)
    codes = [[each["code"] for each in line["warning_codes"]] for line in (*results, end)]
    assert [["demo_model"]] * 4 == codes
    assert end["warnings"] == results[0]["warnings"]


@pytest.mark.parametrize("value", ["yes", "2", ""])
async def test_another_value_of_the_parameter_is_refused(serve, value):
    """It would be ignored otherwise."""
    async with serve() as client:
        answer = await client.post(f"/score?stream={value}", json={"items": ITEMS})

    refused(answer, 422, "invalid")


@pytest.mark.shared
@pytest.mark.parametrize("value", ["0", "false"])
async def test_it_can_be_off(serve, value):
    """As without the parameter."""
    async with serve() as client:
        answer = await client.post(f"/score?stream={value}", json={"items": ITEMS})

    assert 5 == len(answer.json()["results"])


async def test_what_fails_as_a_whole_before_the_first_line_has_its_status(serve):
    """As without a stream."""
    async with serve() as client:
        unknown = await client.post(PATH, json={"items": ITEMS, "metrics": ["bleu"]})
        malformed = await client.post(PATH, content=b"{")

    refused(unknown, 422, "unknown_metric")
    refused(malformed, 400, "malformed")


async def test_what_fails_as_a_whole_later_is_the_last_line(serve, fakes):
    """A model that changed in the midst: the scores that were sent are of the one before."""
    sent = []

    async with serve() as client:
        backend = service_of(client).runtime.handles["vqa"].backend

        async def send(message):
            sent.append(message)
            if len(bodies_of(sent)) == 4 and not fakes["questions"].hold.is_set():
                backend.info = replace(backend.info, revision="2")
                fakes["questions"].hold.set()

        fakes["questions"].hold.clear()
        items = [*ITEMS[:4], item("a red dog", metrics=["dsg"])]
        await asyncio.wait_for(call(client._transport.app, {"items": items}, send), 10)

    *results, end = bodies_of(sent)
    assert 200 == sent[0]["status"]
    assert {0, 1, 2, 3} == {each["index"] for each in results}
    assert "model_changed" == end["error"]["code"]
    assert "done" not in end


@pytest.mark.shared
async def test_an_item_that_needs_no_work_has_its_line(serve):
    """Of its videos no frame is in the part that is asked for, say, or its picture is none."""
    async with serve() as client:
        answer = await client.post(PATH, json={"items": [item(image="bm8="), ITEMS[0]]})

    *results, end = lines_of(answer)
    assert {0, 1} == {each["index"] for each in results}
    assert end["partial"]
