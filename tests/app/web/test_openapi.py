"""The OpenAPI document says what the service does: limits, headers, keys, and what is in an answer."""

import json

import jsonschema_rs
import pytest

from service.core.fields import CLEAN_PATTERN, FILLED_PATTERN, LINE_PATTERN, PLACEHOLDER_AT_MOST_ONCE
from service.metrics.common.registry import own
from tests.app.web.test_bad_input import PLACES
from tests.support.fake_service import key_table
from tests.support.fakes import (
    FakeAesthetic,
    FakeArtifact,
    FakeClip,
    FakeDetector,
    FakeEditReward,
    FakeHpsv3,
    FakeHpsv3pp,
    FakeImageReward,
    FakeItm,
    FakeOcr,
    FakeReranker,
    FakeReward,
    FakeSafety,
    FakeVideoAlign,
)
from tests.support.pictures import b64, item, png
from tests.support.refusals import SECRET, request


@pytest.fixture
async def document(serve):
    async with serve() as client:
        return (await client.get("/openapi.json")).json()


def validator(document, name):
    """Of the schema of a component."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    return jsonschema_rs.Draft202012Validator(schema)


def defaults_in(schema, place=""):
    """Each schema in a document that has a default, by its place."""
    for name, each in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if isinstance(each, dict | list):
            if "default" in each and name != "properties":
                yield f"{place}/{name}", each
            yield from defaults_in(each, f"{place}/{name}")


@pytest.mark.anyio
async def test_every_default_is_one_of_its_schema(document):
    """Also that of options with a rubric or a checklist, whose names stand there without their digests."""
    found = dict(defaults_in(document))
    wrong = {
        place: schema["default"]
        for place, schema in found.items()
        if not jsonschema_rs.is_valid({**schema, "components": document["components"]}, schema["default"])
    }

    assert {} == wrong
    assert found["/components/schemas/ScoreRequest/properties/options"]["default"]["checklist"]


IN_WORDS = [
    {},
    {"items": [{"image": b64(png())}]},  # only some metrics need the prompt
    {**request(), "prompt": SECRET},
    request(options={"vqascore": {"question": SECRET}}),
]


def is_said(body, pointer):
    """Not which file parts there are, text that UTF-8 has no bytes for, and what generators cannot read."""
    return not pointer.endswith("/part") and "\\ud" not in json.dumps(body) and body not in IN_WORDS


@pytest.mark.shared
@pytest.mark.anyio
async def test_the_schema_refuses_what_the_service_refuses(document):
    """Empty prompts, NUL, too many items: whatever the schema can say."""
    schema = validator(document, "ScoreRequest")
    said = [body for body, pointer in PLACES if is_said(body, pointer)]

    assert len(said) > len(PLACES) - 12
    assert [] == [str(body)[:200] for body in said if schema.is_valid(body)]


@pytest.mark.shared
@pytest.mark.anyio
@pytest.mark.parametrize(
    "body",
    [
        {"items": [item()]},
        {"items": [item()], "prompt": None, "images": None, "timeout_ms": None},
        {"items": None, "prompt": "a", "images": [b64(png())]},
        {"items": [item(options=None), item(options={"dsg": {"question_set": None}})]},
        {"items": [item()], "options": {"vqascore": {"question": None, "answer": "{}"}}},
        {"items": [item()], "options": {"vqascore": {"question": "Describe it.", "answer": "{}"}}},
        {"items": [item()], "timeout_ms": 30_000.0, "metrics": ["vqascore", "clipscore"]},
    ],
)
async def test_the_service_takes_what_the_schema_allows(serve, document, body):
    """Nulls for what may be left out, in both forms, and whole numbers however they are written."""
    async with serve() as client:
        answer = await client.post("/score", json=body)

    assert validator(document, "ScoreRequest").is_valid(body)
    assert 200 == answer.status_code, answer.text


SET_ID = "^sha256:[0-9a-f]{64}$"
COLOUR = "^(original|#([0-9a-fA-F]{3}){1,2})$"


def parts(value):
    """Every object within *value*, and itself."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(one)


@pytest.mark.shared
@pytest.mark.anyio
async def test_generators_of_clients_can_read_the_document(document):
    """
    No rules between the fields of a body, and no pattern with braces as characters.

    openapi-python-client leaves out routes with the former, and openapi-generator stops at both.
    """
    schemas = document["components"]["schemas"]
    bodies = {name: body for name, body in schemas.items() if body.get("type") == "object"}
    patterns = {part["pattern"] for part in parts(schemas) if isinstance(part.get("pattern"), str)}

    assert bodies.keys() == schemas.keys()
    assert [] == [name for name, body in bodies.items() if {"oneOf", "anyOf", "allOf", "not"} & body.keys()]
    assert {FILLED_PATTERN, CLEAN_PATTERN, LINE_PATTERN, SET_ID, COLOUR} == patterns
    assert all(told in json.dumps(schemas["VqaScoreOptions"]) for told in (PLACEHOLDER_AT_MOST_ONCE, "needs"))


@pytest.mark.shared
@pytest.mark.anyio
async def test_metrics_that_are_not_served_are_not_in_the_schema(document):
    """A request that names them would be refused."""
    names = document["components"]["schemas"]["ScoreRequest"]["properties"]["metrics"]["items"]["enum"]

    of_questions = {"dsg", "tifa", "soft_tifa", "vq2", "gecko", "skills"}
    assert {"vqascore", "clipscore", "refclipscore", "clip_i", "judge", "checklist", *of_questions} == {
        *names
    }


@pytest.mark.shared
@pytest.mark.anyio
async def test_instruments_are_described_as_text(document):
    """Not as JSON."""
    assert {"text/plain"} == document["paths"]["/metrics"]["get"]["responses"]["200"]["content"].keys()


@pytest.mark.shared
@pytest.mark.anyio
async def test_headers_are_described(document):
    """Those that a request may have, and those of answers."""
    score = document["paths"]["/score"]["post"]
    taken = {parameter["name"]: parameter["schema"] for parameter in score["parameters"]}

    assert {"X-Request-Id", "X-Request-Timeout-Ms", "traceparent", "stream"} == taken.keys()
    assert {"type": "integer", "minimum": 1, "maximum": 600_000} == taken["X-Request-Timeout-Ms"]
    assert {"X-Request-Id", "Server-Timing"} == score["responses"]["200"]["headers"].keys()
    for status in ("429", "503"):
        assert "Retry-After" in score["responses"][status]["headers"]
    assert "WWW-Authenticate" in score["responses"]["401"]["headers"]


@pytest.mark.anyio
async def test_keys_are_described_and_asked_for_where_there_are_some(serve, document, tmp_path):
    """As a bearer token or in X-API-Key; the probes never ask."""
    file = tmp_path / "keys"
    file.write_text(key_table("me", "key"))
    async with serve(server={"api_keys_file": str(file)}) as client:
        closed = (await client.get("/openapi.json", headers={"X-API-Key": "key"})).json()

    schemes = closed["components"]["securitySchemes"]
    assert [("http", "bearer"), ("apiKey", "X-API-Key")] == [
        (one["type"], one.get("scheme") or one["name"]) for one in schemes.values()
    ]
    assert [{name: []} for name in schemes] == closed["security"]
    assert [[], []] == [closed["paths"][path]["get"]["security"] for path in ("/livez", "/readyz")]
    assert schemes == document["components"]["securitySchemes"]
    assert "security" not in document


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("image", [b64(png()), [b64(png()), b64(png("blue"))]], ids=["one", "frames"])
async def test_details_hold_what_their_metric_declares(serve, fakes, image):
    """Every field, and no other; with several images, in `frames`, unless the metric takes them together."""
    fakes |= {"picks": FakeClip(), "prefers": FakeClip(), "ocr": FakeOcr(), "detector": FakeDetector()}
    fakes |= {"imagereward": FakeImageReward(), "aesthetic": FakeAesthetic(), "reward": FakeReward()}
    fakes |= {"itm": FakeItm(), "artifact": FakeArtifact(), "reranker": FakeReranker()}
    fakes |= {"hpsv3": FakeHpsv3(), "hpsv3pp": FakeHpsv3pp(), "editreward": FakeEditReward()}
    fakes |= {"videoalign": FakeVideoAlign(), "safety": FakeSafety()}
    tables = {"pickscore": {"model": "picks"}, "hpsv2": {"model": "prefers"}}
    tables |= {
        name: {"model": name} for name in ("imagereward", "aesthetic", "hpsv3", "hpsv3pp", "editreward")
    } | {"videoalign": {"model": "videoalign"}}
    tables |= {"reward_model": {"model": "reward"}}
    roles = {"picks": "clip", "prefers": "clip"}
    models = {name: {"family": "fake", "role": roles.get(name, name)} for name in fakes}
    task = {"tag": "colors", "include": [{"class": "dog", "count": 1, "color": "red"}]}
    beside = {"references": [b64(png("blue"))], "source": b64(png("blue"))}
    wanted = item('a red dog with "hi"', image, **beside)
    wanted["options"] = {"geneval": task, "refclipscore": {"reference_texts": ["a dog"]}}
    names = [name for name in own() if isinstance(image, list) or not own()[name].options.together]
    body = {"items": [wanted], "metrics": names, "explain": True, "timeout_ms": 120_000}
    async with serve(models=models, metrics=tables) as client:
        answer = (await client.post("/score", json=body)).json()
        document = (await client.get("/openapi.json")).json()

    [result] = answer["results"]
    assert {*names} == result["details"].keys()
    assert validator(document, "ScoreAnswer").is_valid(answer)
    for name, details in result["details"].items():
        declared = own()[name].details.__annotations__
        if "frames" in details:
            assert all({"score", *declared} == one.keys() for one in details["frames"])
        else:
            assert declared.keys() == details.keys()
        broken = {**answer, "results": [{**result, "details": {name: {"cosine": "high"}}}]}
        assert not validator(document, "ScoreAnswer").is_valid(broken)
