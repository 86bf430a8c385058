"""A question LLM behind an OpenAI-compatible server: what is sent, what is made of it, and its faults."""

import json
from itertools import repeat

import pytest

from tests.support.fake_openai import said
from tests.support.pictures import item

pytestmark = pytest.mark.anyio

PROMPT = "a red dog"
SET = json.dumps({"questions": [{"id": 1, "kind": "entity", "text": "Is there a dog?", "depends_on": []}]})
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def message(**fields):
    """A chat completion with these fields of its message."""
    return {"choices": [{"message": {"role": "assistant", **fields}, "finish_reason": "stop"}]}


async def dsg(client, **more):
    return await client.post("/score", json={"items": [item(PROMPT)], "metrics": ["dsg"], **more})


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


WRAPPED = {
    "a fence": f"```json\n{SET}\n```",
    "a fence without a language": f"```\n{SET}\n```\n",
    "a chain of thought": f"<think>\nA dog. {{}}\n</think>\n\n{SET}",
    "a chain of thought without a start": f"A dog.\n</think>\n\n```json\n{SET}\n```",
    "a byte order mark": f"\ufeff{SET}",
}


@pytest.mark.parametrize("text", WRAPPED.values(), ids=WRAPPED)
async def test_an_answer_is_read_from_its_wrapping(with_llm, server, text):
    """In one call, and not taken for a broken one."""
    server.chat = lambda body: (200, said(text))
    async with with_llm() as client:
        answer = (await dsg(client, explain=True)).json()["results"][0]

    assert ["Is there a dog?"] == [each["text"] for each in answer["details"]["dsg"]["questions"]]
    assert 1 == len(server.bodies)


USELESS = {
    "empty": (" \n", "it is empty"),
    "only thoughts": ("<think>\nA dog.", "it is a chain of thought without an end"),
    "nothing after the thoughts": ("<think>\nA dog.</think>\n", "it is empty"),
    "prose": ("Sure! Here are your questions.", "not JSON of the schema"),
}


@pytest.mark.parametrize(("text", "reason"), USELESS.values(), ids=USELESS)
async def test_the_error_says_in_which_way_an_answer_is_useless(with_llm, server, text, reason):
    """After a second try."""
    server.chat = lambda body: (200, said(text))
    async with with_llm() as client:
        error = (await dsg(client, metrics=["dsg", "vqascore"])).json()["results"][0]["errors"]["dsg"]

    assert "question_llm_failed" == error["code"]
    assert error["detail"].endswith(f"is not a question set: {reason}")
    assert 2 == len(server.bodies)


REFUSALS = {
    "a refusal": (
        message(content=None, refusal="I can't help with that."),
        "refused to answer: I can't help",
    ),
    "a filter": (said("", "content_filter"), "a content filter"),
}


@pytest.mark.parametrize(("said", "reason"), REFUSALS.values(), ids=REFUSALS)
async def test_a_refusal_is_an_error_of_the_prompt_and_not_of_the_server(with_llm, server, said, reason):
    """Each is sent once, and three of them do not count as a failing server."""
    server.chat = lambda body: (200, said)
    async with with_llm() as client:
        prompts = ["a dog", "a cat", "a fox"]
        body = {"items": [item(prompt) for prompt in prompts], "metrics": ["dsg", "vqascore"]}
        results = (await client.post("/score", json=body)).json()["results"]
        health = (await client.get("/health")).json()

    errors = [result["errors"]["dsg"] for result in results]
    assert ["call_refused"] * 3 == [error["code"] for error in errors]
    assert all(reason in error["detail"] for error in errors)
    assert 3 == len(server.bodies)
    assert "dsg" not in health["degraded"]


FAULTS = {
    "401": ((401, {}), "returned status 401"),
    "404": ((404, {}), "returned status 404"),
    "500": ((500, {}), "returned status 500"),
    "redirect": ((302, {}), "returned status 302"),
    "HTML": ((200, "<html>"), "not JSON"),
    "a list": ((200, "[]"), "not a JSON object"),
    "no choice": ((200, {"choices": []}), "returned no choices"),
    "no text": ((200, said(None)), "wrote no text"),
    "only reasoning": ((200, message(content=None, reasoning_content=SET)), "its reasoning and no text"),
    "no message": ((200, {"choices": [{"message": None}]}), "returned no message"),
    "cut": ((200, said(SET, "length")), "more than 1024 tokens: the answer is cut"),
    "another end": ((200, said(SET, "tool_calls")), "ended its answer with tool_calls"),
    "endless": ((200, repeat(b" " * 2**20)), "more than 8 MiB"),
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

    assert (200, "returned status 401") == (ready.status_code, ready.json()["models"]["questions"])
    assert 503 == unready.status_code
    assert "models.questions: returned status 401" in unready.json()["detail"]
    assert "serves no model named m" in unknown.json()["detail"]


async def test_a_pinned_set_needs_no_server(with_llm, server):
    """Questions that the caller brings are scored while the question LLM is down."""
    own = [{"id": 1, "text": "Is there a dog?"}]
    server.models = (500, {})
    async with with_llm() as client:
        answer = await dsg(client, options={"dsg": {"question_set": own}})

    assert not answer.json()["partial"]
    assert [] == server.bodies


async def test_the_key_is_sent_to_the_server(with_llm, server, monkeypatch):
    """As a bearer token."""
    monkeypatch.setenv("LLM_KEY", "sesame")
    server.chat = lambda body: (200, said(SET))
    async with with_llm(api_key_env="LLM_KEY") as client:
        await dsg(client)

    assert "Bearer sesame" == server.headers[0]["authorization"]
