"""Families of served models load from a table without a server."""

import pytest

from models.core.calls import AnswerCall
from models.core.contract import RemoteModel
from models.core.examples import IMAGE
from models.core.family import Plan
from models.families.fake.model import GREY
from models.families.registry import families
from tests.support.fake_openai import said

REMOTE = {"base_url": "http://127.0.0.1:1/v1", "model": "owner/name", "extra_body": {"a": 1}}


def table(name, **values):
    family = families()[name]
    return family, family.settings(family=name, role=family.role or "vqa", **values)


@pytest.mark.parametrize("name", ["openai", "openai_vlm"])
def test_a_family_of_served_models_asks_no_server(name):
    """Neither to load one nor to plan it; an LLM generates, and answers otherwise when asked again."""
    family, settings = table(name, **REMOTE)
    model = family.load("left", settings)

    assert isinstance(model, RemoteModel)
    assert (family.role, name, "owner/name") == (model.info.role, model.info.family, model.info.label)
    assert (name == "openai") == model.info.generates
    assert not model.info.repeatable
    assert Plan("owner/name", "http://127.0.0.1:1/v1", remote=True) == family.plan("left", settings)


SCHEMA = {"type": "object", "properties": {"grade": {"type": "integer"}}}
FIELDS = {
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA},
    },
    "structured_outputs": {"json": SCHEMA},
    "guided_json": SCHEMA,
}


@pytest.mark.anyio
@pytest.mark.parametrize("field", [*FIELDS, "none"])
@pytest.mark.parametrize("call", ["graded", "plain", "sampled"])
async def test_a_written_answer_has_pictures_in_order_and_the_schema_that_the_server_takes(field, call):
    """Temperature, seed and length as in the call; a server without a field for schemas gets none."""
    family, settings = table("openai_vlm", **REMOTE, structured_output=field)
    model, bodies = family.load("left", settings), []

    async def post(path, body):
        bodies.append(body)
        return said('{"grade": 3}')

    calls = {
        "graded": AnswerCall(GREY, "Grade it.", ("Before:", IMAGE), max_tokens=99, schema=SCHEMA),
        "plain": AnswerCall(GREY, "What is it?"),
        "sampled": AnswerCall(GREY, "Grade it.", temperature=0.5, seed=3),
    }
    text = await model.answer(model.prepare(calls[call]), post)

    [body] = bodies
    assert ('{"grade": 3}', 1) == (text.text, body["a"])
    shown = [part["type"] for part in body["messages"][0]["content"]]
    assert (["text", "image_url"] if call == "graded" else []) + ["image_url", "text"] == shown
    assert {"graded": (99, 0.0), "plain": (64, 0.0), "sampled": (64, 0.5)}[call] == (
        body["max_tokens"],
        body["temperature"],
    )
    assert (3 if call == "sampled" else None) == body.get("seed")
    sent = {name: body[name] for name in FIELDS if name in body}
    assert ({field: FIELDS[field]} if call == "graded" and field in FIELDS else {}) == sent
