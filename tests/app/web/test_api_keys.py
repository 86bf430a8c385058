"""Who is let in where the operator has listed keys."""

import itertools
import json
import math

import pytest

from tests.support.fake_service import key_table
from tests.support.pictures import b64, item, png
from tests.support.refusals import JSON, SECRET, refused, request

pytestmark = pytest.mark.anyio


async def test_keys_are_asked_for_on_every_route_but_the_probes(serve, tmp_path):
    """Bearer and X-API-Key open the door; nothing else does, and the key is not echoed."""
    keys = tmp_path / "keys"
    keys.write_text(key_table("trainer", SECRET))
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


async def test_a_key_for_decisions_opens_nothing_else(serve, tmp_path):
    """It is 403, on every other path; the probes need no key."""
    keys = tmp_path / "keys"
    keys.write_text(key_table("app", SECRET, 'endpoints = ["decide"]'))
    async with serve(
        server={"api_keys_file": keys}, policies={"show": {"accept": "vqascore > 0.5"}}
    ) as client:
        client.headers["X-API-Key"] = SECRET
        body = {"policy": "show", "items": [{"image": b64(png()), "prompt": "a cat"}]}
        assert 200 == (await client.post("/decide", json=body)).status_code
        assert 200 == (await client.get("/policies")).status_code
        assert 200 == (await client.get("/readyz")).status_code
        for path in ("/score", "/health", "/nothing", "/decisions/one/label"):
            refused(await client.post(path, json=request()), 403, "forbidden")


def named(key):
    return {"X-API-Key": key}


BODIES = {
    "/score": request(),
    "/rank": {"prompt": SECRET, "images": [b64(png())]},
    "/questions": {"prompts": ["a red dog"]},
}


@pytest.mark.parametrize(("path", "body"), BODIES.items(), ids=BODIES)
@pytest.mark.parametrize("lane", ["interactive", "bulk"])
async def test_a_key_uses_the_lanes_of_its_table_alone(serve, tmp_path, caplog, path, body, lane):
    """403 for the other one; a request that names none gets the one that the key may use."""
    (tmp_path / "keys").write_text(key_table("k", "k", f'lanes = ["{lane}"]'))
    [other] = {"interactive", "bulk"} - {lane}
    async with serve(server={"api_keys_file": tmp_path / "keys"}) as client:
        own = await client.post(path, json={**body, "priority": lane}, headers=named("k"))
        refused(
            await client.post(path, json={**body, "priority": other}, headers=named("k")), 403, "forbidden"
        )
        caplog.clear()
        with caplog.at_level("INFO", "scoregate.access"):
            silent = await client.post(path, json=body, headers=named("k"))

    assert [200, 200] == [own.status_code, silent.status_code]
    assert [lane] == [record.lane for record in caplog.records if record.name == "scoregate.access"]


@pytest.mark.parametrize(
    ("path", "body", "pairs"),
    [
        ("/score", {"items": [item(), item()], "metrics": ["vqascore", "clipscore"]}, 4),
        ("/score", {"items": [item(), item(metrics=["vqascore", "clipscore"])]}, 3),
        ("/rank", {"prompt": "a", "images": [b64(png())] * 3}, 3),
        (
            "/rank",
            {"prompt": "a", "images": [b64(png())] * 3, "cascade": {"metric": "clipscore", "keep": 2}},
            5,
        ),
        ("/questions", {"prompts": ["a red dog", "a blue cat"]}, 2),
    ],
    ids=["score", "own", "rank", "cascade", "questions"],
)
async def test_a_quota_is_charged_for_every_item_under_every_metric(serve, tmp_path, path, body, pairs):
    """The request fits once, not twice; one pair more never fits, and waiting would not help."""
    (tmp_path / "keys").write_text(
        key_table("fits", "fits", f"quota = {pairs}") + key_table("never", "never", f"quota = {pairs - 1}")
    )
    async with serve(server={"api_keys_file": tmp_path / "keys"}) as client:
        first, again = [await client.post(path, json=body, headers=named("fits")) for _ in range(2)]
        never = await client.post(path, json=body, headers=named("never"))

    assert 200 == first.status_code
    wait_s = refused(again, 429, "quota_exceeded")["retry_after_s"]
    assert 0 < wait_s <= 60
    assert math.ceil(wait_s) == int(again.headers["Retry-After"])  # nothing at random on top
    assert "retry_after_s" not in refused(never, 413, "larger_than_quota")
    assert "Retry-After" not in never.headers


async def test_what_is_refused_for_another_reason_costs_nothing(serve, tmp_path):
    """What is malformed, wrong, not served, or for a lane of others."""
    (tmp_path / "keys").write_text(key_table("k", "k", "quota = 1", 'lanes = ["interactive"]'))
    refusals = [b"{", {**request(), "x": 1}, request(metrics=["pickscore"]), request(priority="bulk")]
    async with serve(server={"api_keys_file": tmp_path / "keys"}) as client:
        codes = []
        for body in refusals:
            content = body if isinstance(body, bytes) else json.dumps(body)
            answer = await client.post("/score", content=content, headers={**JSON, **named("k")})
            codes.append(answer.json()["code"])
        paid = await client.post("/score", json=request(), headers=named("k"))

    assert ["malformed", "invalid", "unknown_metric", "forbidden"] == codes
    assert 200 == paid.status_code


@pytest.mark.parametrize("parts", [{"clock": itertools.count().__next__}])
async def test_a_changed_file_changes_who_is_let_in(serve, tmp_path):
    """New keys come in and old ones stay out, without a restart; this clock goes on with each look."""
    (tmp_path / "keys").write_text(key_table("old", "old"))
    async with serve(server={"api_keys_file": tmp_path / "keys"}) as client:
        before = [(await client.get("/models", headers=named(key))).status_code for key in ("old", "new")]
        (tmp_path / "keys").write_text(key_table("new", "new"))
        after = [(await client.get("/models", headers=named(key))).status_code for key in ("old", "new")]

    assert ([200, 401], [401, 200]) == (before, after)
