"""Errors before a dialect's endpoint is called have the dialect's form: clients read no other."""

import asyncio
import hashlib
import pickle

import pytest

from tests.app.web.dialects.conftest import PICTURES, PROMPTS

pytestmark = pytest.mark.anyio

# By path, where the text of an error is, and the statuses of 401, 405, 413 and of a temporary failure.
OPENAI, TEXT = ("error", "message"), ("detail",)
FORMS = {
    "/compute": (("error",), [200, 200, 200, 503]),
    "/clipscore/compute": (("error",), [200, 200, 200, 503]),
    "/unirl/score": (TEXT, [401, 405, 413, 503]),
    "/get_reward": (TEXT, [401, 405, 413, 503]),
    "/clipscore/remote_rm": (TEXT, [401, 405, 413, 503]),
    "/api/reward/enqueue": (TEXT, [401, 405, 413, 503]),
    "/api/reward/pull": (TEXT, [401, 405, 413, 503]),
    "/v1/rerank": (OPENAI, [401, 405, 413, 503]),
    "/v2/rerank": (OPENAI, [401, 405, 413, 503]),
    "/rerank": (OPENAI, [401, 405, 413, 503]),
    "/v1/score": (OPENAI, [401, 405, 413, 503]),
    "/v1/decisions": (OPENAI, [401, 405, 413, 503]),
    "/v1/systemone": (OPENAI, [401, 405, 413, 503]),
    "/v1/chat/completions": (OPENAI, [401, 405, 413, 503]),
}
KEY = {"Authorization": "Bearer k"}
DECLARED = {"Content-Type": "application/json", "Content-Length": str(65 * 2**20)}


def said(answer, place):
    """The text of an error."""
    assert "application/json" == answer.headers["content-type"], answer.text
    found = answer.json()
    for name in place:
        found = found[name]
    return found


@pytest.mark.parametrize("path", FORMS)
async def test_an_error_before_the_route_has_the_dialects_form(dialects, path, tmp_path):
    """Without a key, by another method, for a body declared as too large, and while the service drains."""
    keys = tmp_path / "keys.toml"
    keys.write_text(f'[a]\nsha256 = "{hashlib.sha256(b"k").hexdigest()}"\n', "utf-8")
    place, statuses = FORMS[path]
    async with dialects(server={"api_keys_file": str(keys)}) as apps:
        answers = [
            await apps.main.post(path, json={}),
            await apps.main.get(path, headers=KEY),
            await apps.main.post(path, content=b"{}", headers=KEY | DECLARED),
        ]
        apps.service.draining = True
        answers.append(await apps.main.post(path, json={}, headers=KEY))
        apps.service.draining = False

    texts = [said(answer, place) for answer in answers]
    assert statuses == [answer.status_code for answer in answers]
    expected = ["no valid key", "does not allow that method", "larger than 67108864 bytes", "shutting down"]
    assert all(part in text for part, text in zip(expected, texts, strict=True)), texts
    assert "POST" == answers[1].headers["allow"]
    assert "retry-after" in answers[3].headers
    assert "www-authenticate" in answers[0].headers


async def test_a_body_that_stops_has_an_error_of_the_dialects_form(dialects):
    """408, and 503 where only that makes clients wait."""

    async def stops():
        yield b"{"
        await asyncio.Event().wait()

    json = {"Content-Type": "application/json"}
    async with dialects(server={"body_timeout_s": 0.01}) as apps:
        answers = {path: await apps.main.post(path, content=stops(), headers=json) for path in FORMS}
        pickled = await apps.pickled.post("/", content=stops())

    assert all("too slowly" in said(answer, FORMS[path][0]) for path, answer in answers.items())
    assert {408, 503} == {answer.status_code for answer in answers.values()}
    assert "request_timeout" == pickle.loads(pickled.content)["code"]


async def test_a_path_without_an_endpoint_of_a_dialect_has_a_problem(dialects):
    async with dialects() as apps:
        answer = await apps.private.post("/nothing/here", json={})

    assert 404 == answer.status_code
    assert "application/problem+json" == answer.headers["content-type"]


async def test_an_error_before_the_pickles_are_read_is_a_pickle(dialects):
    """Its clients read the pickle of every answer, whatever the status."""
    async with dialects() as apps:
        wrong = await apps.pickled.get("/")
        large = await apps.pickled.post("/", content=b"N.", headers={"Content-Length": str(65 * 2**20)})
        twice = await apps.pickled.post(
            "/", content=b"N.", headers={"Content-Length": "2", "Transfer-Encoding": "chunked"}
        )
        apps.service.draining = True
        late = await apps.pickled.post("/", content=pickle.dumps({"images": PICTURES, "prompts": PROMPTS}))
        apps.service.draining = False

    assert [405, 413, 400, 503] == [each.status_code for each in (wrong, large, twice, late)]
    codes = [pickle.loads(each.content)["code"] for each in (wrong, large, twice, late)]
    assert ["method_not_allowed", "too_large", "malformed", "draining"] == codes
    assert "retry-after" in late.headers
