"""Models behind an OpenAI-compatible server: what is sent, what is made of the answer, and its faults."""

import json
import math
import threading
from contextlib import asynccontextmanager
from itertools import repeat

import httpx
import pytest

from models.base import UpstreamError
from models.openai_llm import OpenAiLLM
from models.openai_vlm import OpenAiVlm
from service.serving.runtime import load_models
from service.serving.upstream import MOST_BYTES, Upstream
from service.settings import Settings, SettingsError
from tests.conftest import item
from tests.fake_openai import FakeOpenAI, said, weighed

pytestmark = pytest.mark.anyio

PROMPT = "a red dog"
SET = json.dumps({"questions": [{"id": 1, "kind": "entity", "text": "Is there a dog?", "depends_on": []}]})
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def server():
    with FakeOpenAI().running() as fake:
        yield fake


@pytest.fixture
def with_llm(serve, fakes, server):
    """A client of a service whose question LLM is *server*."""
    fakes["questions"] = OpenAiLLM("m", extra_body={"top_k": 1})

    @asynccontextmanager
    async def served(**more):
        remote = {"family": "openai", "base_url": server.base_url, "model": "m", "timeout_s": 5, **more}
        local = {"clip": {"family": "open_clip"}, "vqa": {"family": "clip_flant5"}}
        async with serve(models={**local, "questions": remote}) as client:
            yield client

    return served


@pytest.fixture
def with_vlm(serve, fakes, server):
    """A client of a service whose VQA model is *server*."""
    fakes.clear()
    fakes["vqa"] = OpenAiVlm("m", question="Is {} here?", extra_body={})

    @asynccontextmanager
    async def served(**more):
        remote = {"family": "openai_vlm", "base_url": server.base_url, "model": "m", "timeout_s": 5, **more}
        async with serve(models={"vqa": remote}) as client:
            yield client

    return served


async def dsg(client, **more):
    return await client.post("/score", json={"items": [item(PROMPT)], "metrics": ["dsg"], **more})


async def vqa(client, **more):
    body = {"items": [item(PROMPT)], "metrics": ["vqascore"], "explain": True, **more}
    answer = await client.post("/score", json=body)
    assert 200 == answer.status_code
    return answer.json()["results"][0]


# --- the question LLM ---------------------------------------------------------------------------


async def test_questions_are_asked_for_under_their_schema_at_temperature_0(with_llm, server):
    """`response_format`, the lane as priority, the caller's trace, and the operator's own fields."""
    server.chat = lambda body: (200, said(SET))
    async with with_llm() as client:
        answer = await dsg(client, priority="bulk")
        await client.post("/questions", json={"prompts": ["a cat"]}, headers={"traceparent": TRACE})

    assert 200 == answer.status_code
    assert answer.json()["results"][0]["scores"]["dsg"] in (0, 1)
    body = server.bodies[0]
    assert ("m", 0, 0, 1) == (body["model"], body["temperature"], body["seed"], body["top_k"])
    assert "json_schema" == body["response_format"]["type"]
    assert ["questions"] == body["response_format"]["json_schema"]["schema"]["required"]
    assert "guided_json" not in body
    assert ["1", "0"] == [headers["x-vllm-priority"] for headers in server.headers]
    assert [None, TRACE] == [headers.get("traceparent") for headers in server.headers]


async def test_an_answer_that_breaks_the_schema_is_asked_for_once_more(with_llm, server):
    """With another seed; the second answer counts."""
    server.chat = lambda body: (200, said(SET if body["seed"] else '{"questions": [{"id": 1}]}'))
    async with with_llm() as client:
        answer = await dsg(client)
        metrics = (await client.get("/metrics")).text

    assert not answer.json()["partial"]
    assert [0, 1] == [body["seed"] for body in server.bodies]
    assert 'question_llm_calls_total{result="invalid"} 1.0' in metrics
    assert 'question_llm_calls_total{result="ok"} 1.0' in metrics


BROKEN = {
    "prose": "Sure! Here are your questions.",
    "a cycle": json.dumps(
        {"questions": [{"id": 1, "kind": "", "text": "Is it?", "depends_on": [1]}]},
    ),
    "twins": json.dumps(
        {"questions": [{"id": n, "kind": "", "text": "Is it?", "depends_on": []} for n in (1, 2)]}
    ),
    "nothing asked": json.dumps({"questions": [{"id": 1, "kind": "", "text": " ", "depends_on": []}]}),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
async def test_two_answers_that_are_no_question_set_are_an_error(with_llm, server, text):
    """`question_llm_failed` for the metric that needed it, 502 from `/questions`; others are scored."""
    server.chat = lambda body: (200, said(text))
    async with with_llm() as client:
        scored = (await dsg(client, metrics=["dsg", "vqascore"])).json()["results"][0]
        written = await client.post("/questions", json={"prompts": [PROMPT]})

    assert "question_llm_failed" == scored["errors"]["dsg"]["code"]
    assert {"vqascore"} == set(scored["scores"])
    assert (502, "question_llm_failed") == (written.status_code, written.json()["code"])
    assert 4 == len(server.bodies)


FAULTS = {
    "401": ((401, {}), "answered 401"),
    "404": ((404, {}), "answered 404"),
    "500": ((500, {}), "answered 500"),
    "redirect": ((302, {}), "answered 302"),
    "HTML": ((200, "<html>"), "not JSON"),
    "a list": ((200, "[]"), "not a JSON object"),
    "no choice": ((200, {"choices": []}), "holds no choice"),
    "no text": ((200, said(None)), "is no text"),
    "cut": ((200, said(SET, "length")), "did not end"),
    "endless": ((200, repeat(b" " * 2**20)), "without end"),
}


@pytest.mark.parametrize(("answer", "told"), FAULTS.values(), ids=FAULTS)
async def test_a_server_at_fault_is_an_error_of_the_metric_that_needed_it(with_llm, server, answer, told):
    """The error says what the server did; nothing is asked twice of a server that said no."""
    server.chat = lambda body: answer
    async with with_llm() as client:
        result = (await dsg(client, metrics=["dsg", "clipscore"])).json()["results"][0]

    assert {"clipscore"} == set(result["scores"])
    assert "question_llm_failed" == result["errors"]["dsg"]["code"]
    assert told in result["errors"]["dsg"]["detail"]
    assert 1 == len(server.bodies)


async def test_a_slow_server_is_given_up_at_its_timeout(with_llm, server):
    """The error names the time it had."""

    def silence():
        server.gone.wait(10)
        yield b""

    server.chat = lambda body: (200, silence())
    async with with_llm(timeout_s=0.2) as client:
        result = (await dsg(client)).json()["results"][0]

    assert "within 0.2 s" in result["errors"]["dsg"]["detail"]


async def test_a_server_that_cannot_be_reached_is_told_by_readyz(with_llm, fakes, server):
    """The question LLM is not required: ready, but the model's state says why; `required` makes it 503."""
    server.models = (401, {})
    async with with_llm() as client:
        ready = await client.get("/readyz")
    async with with_llm(required=True) as client:
        unready = await client.get("/readyz")
    server.models = (200, {"data": [{"id": "other"}]})
    async with with_llm(required=True) as client:
        unknown = await client.get("/readyz")

    assert (200, "answered 401") == (ready.status_code, ready.json()["models"]["questions"])
    assert 503 == unready.status_code
    assert "models.questions: answered 401" in unready.json()["detail"]
    assert "serves no model named m" in unknown.json()["detail"]


async def test_a_pinned_set_needs_no_server(with_llm, server):
    """Questions that the caller brings are scored while the question LLM is down."""
    own = [{"id": 1, "text": "Is there a dog?"}]
    server.models = (500, {})
    async with with_llm() as client:
        answer = await dsg(client, options={"dsg": {"question_set": own}})

    assert not answer.json()["partial"]
    assert [] == server.bodies


# --- the VLM ------------------------------------------------------------------------------------


async def test_label_probabilities_come_from_named_tokens(with_vlm, server):
    """The image stands before the text, in the model's own words, and the labels are asked for by id."""
    server.chat = lambda body: (200, weighed(id5=-0.5, id6=-2.0, id9=-0.1))
    async with with_vlm() as client:
        result = await vqa(client)

    assert pytest.approx(math.exp(-0.5)) == result["scores"]["vqascore"]
    assert pytest.approx(1.5) == result["details"]["vqascore"]["logit"]
    assert pytest.approx(math.exp(-0.5) + math.exp(-2)) == result["details"]["vqascore"]["label_mass"]
    [body] = server.bodies
    image, text = body["messages"][0]["content"]
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
    assert f"Is {PROMPT} here?" == text["text"]
    assert ([5, 6], True, 1) == (body["logprob_token_ids"], body["logprobs"], body["max_tokens"])


async def test_a_server_without_token_ids_is_read_by_its_likeliest_tokens(with_vlm, server):
    """Its labels may have a space before them; the likeliest form counts."""
    server.tokens = None
    server.chat = lambda body: (200, weighed(**{"Yes": -3.0, " Yes": -0.5, "No": -1.0}))
    async with with_vlm() as client:
        result = await vqa(client)

    assert pytest.approx(math.exp(-0.5)) == result["scores"]["vqascore"]
    assert "logprob_token_ids" not in server.bodies[0]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (weighed(Yes=-0.5), "no log-probability for 'No'"),
        (weighed(Yes=-0.5, No=-9999.0), "'No' is not finite"),
        (said("Yes"), "holds no log-probabilities"),
        ({"choices": 3}, "holds no choice"),
    ],
)
async def test_a_label_without_a_probability_is_an_error_and_never_0(with_vlm, server, answer, told):
    """`upstream_failed`, and no score."""
    server.chat = lambda body: (200, answer)
    async with with_vlm() as client:
        result = await vqa(client)

    assert {} == result["scores"]
    assert "upstream_failed" == result["errors"]["vqascore"]["code"]
    assert told in result["errors"]["vqascore"]["detail"]


async def test_an_answer_of_two_tokens_is_refused(with_vlm, server):
    """A VLM's likelihood is one token's; the caller learns that instead of half a number."""
    async with with_vlm() as client:
        result = await vqa(client, options={"vqascore": {"answer": "maybe so"}})

    assert "call_refused" == result["errors"]["vqascore"]["code"]
    assert [] == server.bodies


async def test_one_failing_call_spares_its_neighbours(with_vlm, server):
    """Failures are per call."""
    bad = "a bad one"
    server.chat = lambda body: (
        (500, {}) if bad in body["messages"][0]["content"][1]["text"] else (200, weighed(id5=-0.5, id6=-2.0))
    )
    async with with_vlm() as client:
        body = {"items": [item(PROMPT), item(bad), item("a third")]}
        results = (await client.post("/score", json=body)).json()["results"]

    assert [1, 0, 1] == [len(result["scores"]) for result in results]
    assert "upstream_failed" == results[1]["errors"]["vqascore"]["code"]


async def test_no_more_calls_are_under_way_than_allowed(with_vlm, server):
    """`max_in_flight` of them are, and the rest wait their turn."""
    lock, pair, under_way, most = threading.Lock(), threading.Barrier(2), 0, 0

    def chat(body):
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        pair.wait(10)  # nobody is answered before a second one is here
        with lock:
            under_way -= 1
        return 200, weighed(id5=-0.5, id6=-2.0)

    server.chat = chat
    async with with_vlm(max_in_flight=2) as client:
        body = {"items": [item(f"{n}") for n in range(6)]}
        answer = (await client.post("/score", json=body)).json()
        metrics = (await client.get("/metrics")).text

    assert not answer["partial"]
    assert 2 == most
    assert 'calls_total{lane="interactive",model="vqa",result="ok"} 6.0' in metrics


# --- tries --------------------------------------------------------------------------------------


def scripted(*answers):
    """A transport that gives those answers in turn, and the times waited between them."""
    left, waits = list(answers), []

    def answer(request):
        given = left.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    async def sleep(seconds):
        waits.append(seconds)

    upstream = Upstream(
        "http://x/v1", timeout_s=5, max_in_flight=1, transport=httpx.MockTransport(answer), sleep=sleep
    )
    return upstream, waits, left


async def test_what_passes_by_itself_is_tried_again():
    """Refused connections and overload, each wait about twice the last."""
    upstream, waits, left = scripted(
        httpx.ConnectError("refused"), httpx.Response(503), httpx.Response(200, json={"fine": 1})
    )

    assert {"fine": 1} == await upstream.post("chat/completions", {})
    assert [] == left
    assert 0.12 <= waits[0] <= 0.38
    assert 0.25 <= waits[1] <= 0.75
    await upstream.aclose()


async def test_a_server_that_stays_away_is_given_up():
    """After three tries, with the last one's reason."""
    upstream, waits, left = scripted(*[httpx.ConnectError("refused")] * 4)

    with pytest.raises(UpstreamError, match=r"cannot be reached \(ConnectError\)"):
        await upstream.post("chat/completions", {})
    assert (2, 1) == (len(waits), len(left))
    await upstream.aclose()


async def test_an_answer_is_read_up_to_a_bound():
    """A body larger than the bound is no answer."""
    upstream, _, _ = scripted(httpx.Response(200, content=b" " * (MOST_BYTES + 1)))

    with pytest.raises(UpstreamError, match="without end"):
        await upstream.post("chat/completions", {})
    await upstream.aclose()


# --- settings -----------------------------------------------------------------------------------


def settings(**table):
    return Settings.model_validate({"models": {"questions": {"family": "openai", **table}}})


@pytest.mark.parametrize(
    "table",
    [
        {"model": "m"},
        {"base_url": "http://x/v1"},
        {"base_url": "x/v1", "model": "m"},
        {"base_url": "http://user:secret@x/v1", "model": "m"},
    ],
)
def test_a_remote_model_needs_an_address_and_a_name(table):
    """And the address holds no secret: keys come from the environment."""
    with pytest.raises(ValueError, match="base_url"):
        settings(**table)


def test_a_key_that_is_not_there_ends_the_start(monkeypatch):
    """The variable is named; its value never is."""
    monkeypatch.delenv("LLM_KEY", raising=False)
    with pytest.raises(SettingsError, match="LLM_KEY is not set"):
        load_models(settings(base_url="http://x/v1", model="m", api_key_env="LLM_KEY"))


async def test_the_key_is_sent_to_the_server(with_llm, server, monkeypatch):
    """As a bearer token."""
    monkeypatch.setenv("LLM_KEY", "sesame")
    server.chat = lambda body: (200, said(SET))
    async with with_llm(api_key_env="LLM_KEY") as client:
        await dsg(client)

    assert "Bearer sesame" == server.headers[0]["authorization"]
