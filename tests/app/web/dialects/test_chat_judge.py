"""Judges and reward clients in OpenAI's chat format."""

import json
import threading
from math import exp, isclose, log

import pytest

from models.core.calls import AnswerCall, LikelihoodCall
from models.core.outcomes import Text
from models.families.fake.model import answer
from models.images.image import Image
from service.web.dialects import chat_judge
from tests.app.web.dialects.conftest import BROKEN, PICTURES, PROMPTS
from tests.support.pictures import b64

pytestmark = pytest.mark.anyio

PATH = "/v1/chat/completions"
RUBRIC = """You are a strict judge.
User request: a red square
on grey
Diffusion prompt used (context only): a square
Notes: (none)

CORRECTNESS QUESTIONS:
- attributes: Is the colour correct?
- completeness: Is the request satisfied?
AESTHETICS QUESTIONS:
- lighting: Is the lighting effective?

Return ONLY this JSON shape
"""


def part(picture=PICTURES[0]):
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64(picture)}"}}


def body(text, *pictures, **more):
    content = [*(pictures or [part()]), {"type": "text", "text": text}]
    return {
        "messages": [{"role": "system", "content": "A judge."}, {"role": "user", "content": content}],
        **more,
    }


async def message(client, sent):
    """The only message of the answer."""
    response = await client.post(PATH, json=sent)
    assert 200 == response.status_code, response.text
    [choice] = response.json()["choices"]
    assert "stop" == choice["finish_reason"]
    return choice["message"]["content"]


def p_yes(question):
    outcome = answer(LikelihoodCall(Image(PICTURES[0]), question))
    yes, no = exp(outcome.log_p_yes), exp(outcome.log_p_no)
    return yes / (yes + no)


async def test_a_prompt_has_the_score_of_the_api(dialects):
    """As JSON, by the metric of the settings or of `model`."""
    async with dialects() as apps:
        expected = [await apps.score(PICTURES[0], PROMPTS[0], name) for name in ("vqascore", "clipscore")]
        first = json.loads(await message(apps.main, body(PROMPTS[0])))
        named = json.loads(await message(apps.private, body(PROMPTS[0], model="clipscore")))

    assert [{"score": expected[0], "metric": "vqascore"}, {"score": expected[1], "metric": "clipscore"}] == [
        first,
        named,
    ]


async def test_a_rubric_has_the_probability_of_yes_for_each_question(dialects):
    """With the request of the user before each, as verl-omni's judge sends it."""
    async with dialects() as apps:
        found = json.loads(await message(apps.main, body(RUBRIC)))

    state = "The picture was made for this request: a red square\non grey\n\n"
    ask = " Please answer yes or no."
    expected = {
        "attributes": p_yes(f"{state}Is the colour correct?{ask}"),
        "completeness": p_yes(f"{state}Is the request satisfied?{ask}"),
    }
    assert expected == pytest.approx(found["correctness_scores"])
    assert sum(expected.values()) / 2 == pytest.approx(found["correctness"])
    assert {"lighting"} == found["aesthetics_scores"].keys()
    assert found["findings"].startswith("lowest: ")


async def test_a_question_with_logprobs_has_those_of_yes_and_no(dialects):
    """Exactly, for the question as it was sent."""
    question = "Is it red? Answer Yes or No."
    async with dialects() as apps:
        response = await apps.main.post(PATH, json=body(question, logprobs=True, top_logprobs=20))

    [choice] = response.json()["choices"]
    [token] = choice["logprobs"]["content"]
    logs = {each["token"]: each["logprob"] for each in token["top_logprobs"]}
    expected = answer(LikelihoodCall(Image(PICTURES[0]), question))
    assert isclose(expected.log_p_yes, logs["Yes"], rel_tol=1e-9, abs_tol=1e-9)
    assert isclose(expected.log_p_no, logs["No"], rel_tol=1e-9, abs_tol=1e-9)
    assert max(logs, key=logs.get) == choice["message"]["content"] == token["token"]
    assert log(p_yes(question)) <= 0


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        (body("a", stream=True), 400, "/stream: "),
        (body("a", n=2), 400, "/n: "),
        (body("a", response_format={"type": "json_schema"}), 400, "/response_format: "),
        (body("a", part(), part()), 400, "/messages/1/content: has 2 pictures"),
        ({"messages": [{"role": "user", "content": "a"}]}, 400, "/messages/0/content: has 0 pictures"),
        ({"messages": [{"role": "assistant", "content": "a"}]}, 400, "/messages/0/role: "),
        ({"messages": [{"role": "system", "content": "a"}]}, 400, "/messages: has 0 messages of the user"),
        (body(""), 400, "/messages: is empty"),
        (body("a" * 16_001), 400, "has more than 16000 characters"),
        (body("a", model="gpt-9"), 400, "there is no such metric"),
        (body("a", model="gpt-9", logprobs=True), 404, "/model: there is no such VQA model"),
        (body("a", part(BROKEN)), 400, "/messages: "),
        (body("a", part(), *[{"type": "text", "text": ""}] * 256), 400, "/messages/1/content: has 258 parts"),
        (body("a" * 4001), 400, "/messages: the prompt has more than 4000 characters"),
        (body("a", {"type": "input_audio"}), 400, "/messages/1/content: has 0 pictures"),
        (body("a", part(), {"type": "input_audio"}), 400, "/messages/1/content/1: is neither"),
        (body("Rate this image from 0 to 10. Respond in JSON."), 400, "read are a prompt alone"),
        (body("CORRECTNESS QUESTIONS:\n1. Is it red?"), 400, "below 'CORRECTNESS QUESTIONS:'"),
        (body("A QUESTIONS:\n- b: Is it?\n- the hue: Is it?"), 400, "a line below 'A QUESTIONS:' is not"),
        (body("A QUESTIONS:\n- b: Is it?\n\nB QUESTIONS:\n"), 400, "below 'B QUESTIONS:'"),
        (
            body("\n".join(f"{letter} QUESTIONS:" for letter in "TSRQPONMLKJIHGFE")),
            400,
            "below 'T QUESTIONS:'",
        ),
        (body("A QUESTIONS:\n- b: Is it?\n- b: Was it?"), 400, "two questions of a section have one name"),
        (
            body("A QUESTIONS:" + "".join(f"\n- b{n}: Is it?" for n in range(65))),
            400,
            "more than 64 questions",
        ),
    ],
)
async def test_what_cannot_be_judged_has_an_error_of_openais_form(dialects, sent, status, said):
    """With the place in the request."""
    async with dialects() as apps:
        response = await apps.main.post(PATH, json=sent)

    assert status == response.status_code
    assert said in response.json()["error"]["message"]
    assert "invalid_request_error" == response.json()["error"]["type"]


@pytest.mark.parametrize("text", ["a cat", RUBRIC])
async def test_a_large_body_is_understood_on_the_threads_that_parse(dialects, text, monkeypatch):
    """So that its texts do not delay other requests."""
    read, rubric = [], chat_judge.rubric

    def noted(said):
        read.append(threading.current_thread())
        return rubric(said)

    monkeypatch.setattr(chat_judge, "rubric", noted)
    async with dialects() as apps:
        for more in ("", "a" * 100_000, "a" * 2_000_000):
            await message(apps.main, body(text, ignored=more))

    assert [True, False, False] == [each is threading.main_thread() for each in read]


SCHEMA = {
    "type": "object",
    "properties": {
        "fit": {"type": "integer", "minimum": 0, "maximum": 10},
        "why": {"type": "string"},
    },
    "required": ["fit", "why"],
    "additionalProperties": False,
}
INLINE = {"allow_inline": True}


def graded(schema=SCHEMA, **more):
    form = {"type": "json_schema", "json_schema": {"name": "grade", "strict": True, "schema": schema}}
    return body("Rate this image from 0 to 10.", response_format=form, **more)


async def test_instructions_with_a_schema_have_the_object_that_the_model_writes(dialects, fakes):
    """Those of the system come first; the schema goes to the model's server."""
    async with dialects(judge=INLINE) as apps:
        found = json.loads(await message(apps.main, graded()))

    assert SCHEMA["properties"].keys() == found.keys()
    assert found["fit"] in range(11)
    [call] = [call for call in fakes["vqa"].calls if isinstance(call, AnswerCall)]
    assert "A judge.\n\nRate this image from 0 to 10." == call.question
    assert (SCHEMA, 1024, 0) == (call.schema, call.max_tokens, call.temperature)


async def test_an_answer_that_does_not_follow_the_schema_is_an_error(dialects, fakes):
    """With the beginning of the text, and counted by its reason; as `/score` does it."""
    plain = fakes["vqa"].answer
    fakes["vqa"].answer = lambda call: (
        Text('{"fit": 11, "why": "-"}') if isinstance(call, AnswerCall) else plain(call)
    )
    async with dialects(judge=INLINE) as apps:
        response = await apps.main.post(PATH, json=graded())
        refused = apps.service.instruments.refused_answers.labels("out_of_range")._value.get()

    said = response.json()["error"]["message"]
    assert (502, 1) == (response.status_code, refused)
    assert 'fit: 11 is not an integer from 0 to 10; the answer begins: \'{"fit": 11' in said


@pytest.mark.parametrize(
    ("sent", "judge", "said"),
    [
        (graded(), {}, "/response_format: schemas of requests are off"),
        (graded({"type": "array"}), INLINE, "/response_format/json_schema/schema: the schema must be"),
        (graded({**SCHEMA, "required": 5}), INLINE, "/response_format/json_schema/schema: all properties"),
        (body("a", response_format={"type": "json_schema"}), INLINE, "/response_format/json_schema/schema: "),
    ],
)
async def test_a_schema_that_cannot_be_used_is_refused(dialects, sent, judge, said):
    """By default every one."""
    async with dialects(judge=judge) as apps:
        response = await apps.main.post(PATH, json=sent)

    assert 400 == response.status_code
    assert response.json()["error"]["message"].startswith(said)


async def test_a_fault_of_the_model_is_that_of_the_request(dialects, fakes):
    """The place is that of the messages."""
    fakes["vqa"].fault = lambda call: ValueError("no") if isinstance(call, AnswerCall) else None
    async with dialects(judge=INLINE) as apps:
        response = await apps.main.post(PATH, json=graded())

    assert 500 == response.status_code
    assert response.json()["error"]["message"].startswith("/messages: ")
