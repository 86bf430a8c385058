"""Requests that are wrong in themselves: refused as a whole, by name and place, without their content."""

import json

import pytest

from tests.support.pictures import b64, item, png
from tests.support.refusals import JSON, SECRET, refused, request

pytestmark = pytest.mark.anyio

TEXT = {"Content-Type": "text/plain"}


def prompt(text: str) -> dict:
    return {"items": [item(), item(text)]}


def own_question(**fields) -> dict:
    """A request that brings one question along."""
    return request(options={"dsg": {"question_set": [{"id": 1, "text": "Is it red?", **fields}]}})


TEXTS = {
    "nothing": b"",
    "no JSON": f"prompt={SECRET}".encode(),
    "half of it": json.dumps(request()).encode()[:40],
    "deep": b"[" * 100_000,
    "NaN": json.dumps(request(timeout_ms=float("nan"))).encode(),
    "infinity": b'{"timeout_ms": Infinity}',
    "latin-1": b'{"prompt": "\xe9"}',
    "utf-16": json.dumps(request()).encode("utf-16"),
    "two values": b"{} {}",
}


@pytest.mark.shared
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_what_is_no_json_is_malformed(serve, text, caplog):
    """400, with the place where reading stopped."""
    async with serve() as client:
        answer = await client.post("/score", content=text, headers=JSON)

    refused(answer, 400, "malformed")
    assert SECRET not in caplog.text


PLACES = [
    ([], ""),
    (None, ""),
    ({}, ""),
    ({"items": []}, "/items"),
    ({"items": "x"}, "/items"),
    ({"items": [3]}, "/items/0"),
    ({"items": [item()] * 129}, "/items"),
    ({"prompt": SECRET, "images": [b64(png())] * 129}, "/images"),
    ({"prompt": SECRET, "images": [b64(png()), 7]}, "/images/1"),
    ({"prompt": SECRET, "images": [{"part": "p"}]}, "/images/0/part"),
    ({**request(), "prompt": SECRET}, ""),
    (prompt(""), "/items/1/prompt"),
    (prompt(" \n "), "/items/1/prompt"),
    (prompt(SECRET * 2000), "/items/1/prompt"),
    (prompt(f"{SECRET}\0"), "/items/1/prompt"),
    (prompt(f"{SECRET}\ud800"), "/items/1/prompt"),
    (prompt(f"{SECRET}\udc00"), "/items/1/prompt"),
    ({"items": [{"image": b64(png())}]}, "/items/0/prompt"),
    ({"items": [item(), item(image=5)]}, "/items/1/image"),
    ({"items": [item(image={})]}, "/items/0/image/data"),
    ({"items": [item(image={"data": 5})]}, "/items/0/image/data"),
    ({"items": [item(image={"data": "", "part": "p"})]}, "/items/0/image/data"),
    ({"items": [item(image={"url": ""})]}, "/items/0/image/url"),
    ({"items": [item(image=[])]}, "/items/0/image"),
    ({"items": [item(image=[b64(png()), [b64(png())]])]}, "/items/0/image/1"),
    ({"items": [item(image=[b64(png()), {"part": "p"}])]}, "/items/0/image/1/part"),
    ({"items": [item(id=7)]}, "/items/0/id"),
    ({"items": [item(weight=1)]}, "/items/0/weight"),
    (request(**{"a/b~c": 1}), "/a~1b~0c"),
    (request(**{"x" * 5000: 1}), "/" + "x" * 64),
    (request(**{f"x{n}": n for n in range(5000)}), ""),
    (request(**{"\ud800": 1}), ""),
    (request(explain=1), "/explain"),
    (request(timeout_ms=True), "/timeout_ms"),
    (request(timeout_ms="30"), "/timeout_ms"),
    (request(timeout_ms=0), "/timeout_ms"),
    (request(timeout_ms=10**30), "/timeout_ms"),
    (request(priority="urgent"), "/priority"),
    (request(metrics=[]), "/metrics"),
    (request(metrics="vqascore"), "/metrics"),
    (request(metrics=["vqascore", "vqascore"]), "/metrics"),
    (request(metrics=["x" * 65]), "/metrics/0"),
    (request(metrics=["\ud800"]), "/metrics/0"),
    (request(options={"bleu": {}}), "/options/bleu"),
    (request(options={"vqascore": {"question": SECRET}}), "/options/vqascore/question"),
    (request(options={"dsg": {"question_set": SECRET}}), "/options/dsg/question_set"),
    (request(options={"dsg": {"question_set": [{"id": 1}]}}), "/options/dsg/question_set/0/text"),
    (own_question(id=2**64), "/options/dsg/question_set/0/id"),
    (own_question(id=2**53), "/options/dsg/question_set/0/id"),
    (own_question(id=1.5), "/options/dsg/question_set/0/id"),
    (own_question(depends_on=[10**40]), "/options/dsg/question_set/0/depends_on/0"),
]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("body", "pointer"), PLACES, ids=[f"{n} {p[:40]}" for n, (_, p) in enumerate(PLACES)]
)
async def test_what_is_not_allowed_is_invalid_and_its_place_is_named(serve, fakes, body, pointer, caplog):
    """422, before any picture is looked at; the first fault's pointer is the field's."""
    async with serve() as client:
        answer = await client.post("/score", content=json.dumps(body), headers=JSON)

    assert pointer == refused(answer, 422, "invalid")["errors"][0]["pointer"]
    assert [] == fakes["vqa"].calls
    assert SECRET not in caplog.text


@pytest.mark.shared
async def test_a_number_too_large_for_any_float_is_no_timeout(serve):
    """It is JSON, and reads as infinity; the field's own limits refuse it."""
    async with serve() as client:
        answer = await client.post("/score", content=b'{"timeout_ms": 1e999}', headers=JSON)

    assert "/timeout_ms" in [fault["pointer"] for fault in refused(answer, 422, "invalid")["errors"]]


@pytest.mark.shared
async def test_every_wrong_place_is_named_up_to_twenty(serve):
    """One answer tells them all, and how many more there are."""
    async with serve() as client:
        answer = await client.post("/score", json={"items": [item("")] * 30})

    body = refused(answer, 422, "invalid")
    assert [f"/items/{n}/prompt" for n in range(20)] == [fault["pointer"] for fault in body["errors"]]
    assert "29 more" in body["detail"]


async def test_other_refusals_have_codes_of_their_own(serve):
    """Unknown metrics, media types, routes and methods."""
    async with serve() as client:
        refused(await client.post("/score", json=request(metrics=["bleu"])), 422, "unknown_metric")
        form = refused(await client.post("/score", data={"a": "b"}), 415, "unsupported_media_type")
        text = refused(
            await client.post("/score", content=b"{}", headers=TEXT), 415, "unsupported_media_type"
        )
        refused(await client.get("/nothing"), 404, "not_found")
        refused(await client.get("/score"), 405, "method_not_allowed")
        refused(await client.post("/questions", json={"prompts": ["a"] * 129}), 422, "invalid")
    assert "text/plain; send application/json or multipart/form-data" == text["detail"]
    assert "--json" in form["detail"]  # since curl's -d declares JSON as a form


KEPT = [
    "  a dog \n",
    "\ta  dog",
    "un été à la plage 🏖️",
    "<image> </s> <pad>",
    "\u202ea\u0301",
    '"{}"',
    "x" * 4000,
]


@pytest.mark.parametrize("text", KEPT, ids=ascii)
async def test_prompts_are_kept_byte_for_byte(serve, fakes, text):
    """Blanks at the ends, any Unicode, and the names of tokens are text."""
    async with serve() as client:
        answer = await client.post("/score", json={"items": [item(text)]})

    assert 200 == answer.status_code
    assert [f'Does this figure show "{text}"? Please answer yes or no.'] == [
        call.question for call in fakes["vqa"].calls
    ]
