"""Requests that are wrong in themselves: refused as a whole, by name and place, without their content."""

import hashlib
import json
import random

import httpx
import pytest

from tests.conftest import b64, item, png

pytestmark = pytest.mark.anyio

SECRET = "xyzzy"  # stands in every prompt here, and must stand in no answer and no log
JSON = {"Content-Type": "application/json"}


def refused(answer: httpx.Response, status: int, code: str) -> dict:
    """The problem that *answer* holds, checked."""
    body = answer.json()
    assert (status, code) == (answer.status_code, body["code"])
    assert status == body["status"]
    assert "application/problem+json" == answer.headers["Content-Type"]
    assert answer.headers["X-Request-Id"] == body["request_id"]
    assert SECRET not in answer.text
    assert len(answer.content) < 10_000
    return body


def request(**fields) -> dict:
    return {"items": [item(f"a red {SECRET}")], **fields}


def prompt(text: str) -> dict:
    return {"items": [item(), item(text)]}


def parts(name: str = "p", **fields) -> dict:
    return {"items": [item(SECRET, {"part": name})], **fields}


TEXTS = {
    "nothing": b"",
    "no JSON": f"prompt={SECRET}".encode(),
    "half of it": json.dumps(request()).encode()[:40],
    "deep": b"[" * 100_000,
    "NaN": json.dumps(request(timeout_ms=float("nan"))).encode(),
    "infinity": b'{"timeout_ms": Infinity}',
    "latin-1": b'{"prompt": "\xe9"}',
    "utf-16": json.dumps(request()).encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "two values": b"{} {}",
}


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
]


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


async def test_a_number_too_large_for_any_float_is_no_timeout(serve):
    """It is JSON, and reads as infinity; the field's own limits refuse it."""
    async with serve() as client:
        answer = await client.post("/score", content=b'{"timeout_ms": 1e999}', headers=JSON)

    assert "/timeout_ms" in [fault["pointer"] for fault in refused(answer, 422, "invalid")["errors"]]


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
        refused(await client.post("/score", data={"a": "b"}), 415, "unsupported_media_type")
        refused(await client.post("/score", content=b"{}"), 415, "unsupported_media_type")
        refused(await client.get("/nothing"), 404, "not_found")
        refused(await client.get("/score"), 405, "method_not_allowed")
        refused(await client.post("/questions", json={"prompts": ["a"] * 129}), 422, "invalid")


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


async def test_a_body_over_the_limit_is_refused_declared_or_not(serve):
    """413 without Retry-After; of an undeclared body no more than the limit is read."""
    sent = []

    async def chunks():
        for n in range(100):
            sent.append(n)
            yield bytes(2**18)

    async with serve(server={"body_limit_mb": 1}) as client:
        declared = await client.post("/score", content=bytes(2**20 + 1), headers=JSON)
        chunked = await client.post("/score", content=chunks(), headers=JSON)
        lies = {**JSON, "Content-Length": "9" * 5000}
        absurd = await client.post("/score", content=b"{}", headers=lies)

    for answer in (declared, chunked, absurd):
        refused(answer, 413, "too_large")
        assert "Retry-After" not in answer.headers
    assert 5 == len(sent)


@pytest.mark.parametrize("length", [b"\xb2", b"-1", b"x"])
async def test_a_length_that_is_no_number_is_no_fault_of_ours(serve, length):
    """What counts is what comes."""
    async with serve() as client:
        headers = [(b"Content-Type", b"application/json"), (b"Content-Length", length)]
        refused(await client.post("/score", content=b"{", headers=headers), 400, "malformed")


FILE = ("p.png", png())
FORM = {"Content-Type": "multipart/form-data; boundary=b"}
CHARSET = 'multipart/form-data; boundary=b; charset="{}"'
TEXT = '--b\r\nContent-Disposition: form-data; name="request"\r\n\r\n{}\r\n--b--\r\n'

MULTIPART = {
    "no request part": ({"files": {"p": FILE}}, 400),
    "no JSON": ({"data": {"request": SECRET}, "files": {"p": FILE}}, 400),
    "a missing part": ({"data": {"request": json.dumps(parts("q"))}, "files": {"p": FILE}}, 422),
    "a part without a filename": (
        {"data": {"request": json.dumps(parts()), "p": "x"}, "files": {"q": FILE}},
        422,
    ),
    "too many files": ({"data": {"request": "{}"}, "files": [("p", FILE)] * 129}, 400),
    "too many fields": ({"data": {"request": "{}", "a": "", "b": ""}, "files": {"p": FILE}}, 400),
    "no boundary": ({"content": b"x", "headers": {"Content-Type": "multipart/form-data"}}, 400),
    "broken": ({"content": f"--b\r\n{SECRET}".encode(), "headers": FORM}, 400),
    "cut": ({"content": TEXT.format("{}")[:60].encode(), "headers": FORM}, 400),
    "another boundary": ({"content": TEXT.replace("--b", "--c").encode(), "headers": FORM}, 400),
    "a strange charset": (
        {"content": TEXT.encode(), "headers": {"Content-Type": CHARSET.format("undefined")}},
        400,
    ),
}


@pytest.mark.parametrize(("sent", "status"), MULTIPART.values(), ids=MULTIPART)
async def test_broken_multipart_is_refused(serve, sent, status, caplog):
    """400 for what cannot be read, 422 for parts that do not exist."""
    async with serve() as client:
        answer = await client.post("/score", **sent)

    refused(answer, status, {400: "malformed", 422: "invalid"}[status])
    assert SECRET not in caplog.text


async def test_the_request_may_be_a_file_part(serve):
    """Some clients give every part a filename."""
    files = {"request": ("request.json", json.dumps(parts())), "p": FILE}
    async with serve() as client:
        answer = await client.post("/score", files=files)
        as_field = await client.post("/score", data={"request": json.dumps(parts())}, files={"p": FILE})

    assert 200 == answer.status_code
    [one], [other] = answer.json()["results"], as_field.json()["results"]
    assert one["scores"] == other["scores"]


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "a/b", "<script>", "é".encode()])
async def test_a_bad_request_id_is_replaced(serve, given):
    """A good one is echoed on every answer, whatever the status."""
    async with serve() as client:
        for path in ("/health", "/nothing", "/score", "/questions/x"):
            bad = await client.get(path, headers={"X-Request-Id": given})
            good = await client.get(path, headers={"X-Request-Id": "a.good_one-1"})
            assert 32 == len(bad.headers["X-Request-Id"])
            assert "a.good_one-1" == good.headers["X-Request-Id"]


async def test_keys_are_asked_for_on_every_route_but_the_probes(serve, tmp_path):
    """Bearer and X-API-Key open the door; nothing else does, and the key is not echoed."""
    keys = tmp_path / "keys"
    keys.write_text(f"trainer:{hashlib.sha256(SECRET.encode()).hexdigest()}\n")
    async with serve(server={"api_keys_file": keys}) as client:
        for headers in (
            {},
            {"X-API-Key": SECRET[1:]},
            {"Authorization": f"Basic {SECRET}"},
            {"X-API-Key": "\xe9"},
        ):
            coded = {name: value.encode("latin-1") for name, value in headers.items()}
            for path in ("/score", "/health", "/nothing"):
                answer = await client.post(path, json=request(), headers=coded)
                refused(answer, 401, "unauthorized")
                assert "Bearer" == answer.headers["WWW-Authenticate"]
        for headers in ({"X-API-Key": SECRET}, {"Authorization": f"Bearer {SECRET}"}):
            assert 200 == (await client.post("/score", json=request(), headers=headers)).status_code
        assert [200, 200] == [(await client.get(path)).status_code for path in ("/livez", "/readyz")]


async def test_a_caller_who_leaves_amid_the_body_is_no_error(serve, fakes, caplog):
    """Nothing is answered, nothing is scored, and no error is logged."""
    answered = []

    async def gone():
        return {"type": "http.disconnect"}

    async def send(message):
        answered.append(message)

    async with serve() as client:
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/score",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
        }
        await client._transport.app(scope, gone, send)

    assert [] == answered
    assert [] == fakes["vqa"].calls
    assert [] == [record for record in caplog.records if record.levelname == "ERROR"]


VALUES = [
    None,
    True,
    0,
    -1,
    10**40,
    1.5,
    "",
    "a",
    "\0",
    "\ud800",
    [],
    {},
    [[]],
    {"": {}},
    "sha256:",
    ["dsg"] * 9,
]


def mutated(value, random: random.Random):
    """*value* with a few of its places replaced, dropped or added to."""
    if random.random() < 0.12:
        return random.choice(VALUES)
    if isinstance(value, dict):
        kept = {key: mutated(one, random) for key, one in value.items() if random.random() > 0.04}
        return kept | ({random.choice("abc\0\ud800/~"): 1} if random.random() < 0.04 else {})
    if isinstance(value, list):
        return [mutated(one, random) for one in value for _ in range(random.choice([1, 1, 1, 0, 2]))]
    return value


async def test_no_input_whatever_is_a_fault_of_ours(serve):
    """Three hundred mutations of a valid request: 200, or 4xx as a problem; never 5xx."""
    chance = random.Random(20)
    asked = {"question": "Is {} there?", "answer": "Yes", "output": "logit", "normalization": "product"}
    own = [{"id": 1, "text": "Is it red?", "kind": "colour", "depends_on": []}]
    valid = {
        "items": [item(id="a"), item(image={"data": b64(png())}), item(image=[b64(png())])],
        "metrics": ["vqascore", "clipscore", "dsg"],
        "options": {"vqascore": asked, "clipscore": {"scale": "hessel"}, "dsg": {"question_set": own}},
        "priority": "bulk",
        "timeout_ms": 60_000,
        "explain": True,
    }
    seen = set()
    async with serve() as client:
        assert 200 == (await client.post("/score", json=valid)).status_code
        for _ in range(300):
            text = json.dumps(mutated(valid, chance))
            answer = await client.post("/score", content=text, headers=JSON)
            seen.add(answer.status_code)
            if answer.status_code != 200:
                refused(answer, answer.status_code, answer.json()["code"])

    assert {200, 422} <= seen <= {200, 400, 404, 422}
