"""Who is let in where the operator has listed keys."""

import asyncio
import hashlib
import json
import math
import os
import threading
from pathlib import Path

import pytest

from service.http import keys
from service.http.keys import Key, KeyFile, Keys
from service.settings import SettingsError
from tests.conftest import b64, item, png
from tests.http.refusals import JSON, SECRET, refused, request

pytestmark = pytest.mark.anyio


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


@pytest.mark.parametrize("line", ["trainer:{}", "other:" + "0" * 64 + "\ntrainer:{}"])
def test_the_hash_of_an_empty_key_is_refused_at_the_start(line, tmp_path):
    """A script writes it where its variable is not set; the line says whose it is."""
    keys = tmp_path / "keys"
    keys.write_text(line.format(hashlib.sha256(b"").hexdigest()))

    with pytest.raises(SettingsError, match=r"api_keys_file: .*the key of trainer is empty"):
        Keys.read(keys)


def test_an_absent_key_matches_no_hash():
    """Nor does an empty one, whatever the hashes are."""
    keys = Keys([Key("trainer", hashlib.sha256(b"").digest())])

    for headers in ({}, {"x-api-key": ""}, {"authorization": "Bearer"}, {"authorization": "Bearer  "}):
        assert keys.of(headers) is None


def line(name, rights=""):
    """A line of the file, for a key that is its name."""
    return f"{name}:{hashlib.sha256(name.encode()).hexdigest()} {rights}\n"


def named(key):
    return {"X-API-Key": key}


def test_a_line_may_give_lanes_and_a_quota():
    """A line without rights has all of them, as it always had."""
    keys = Keys.parse(
        f"{line('a')}{line('b', 'lanes=bulk  quota=6000')}{line('c', 'lanes=bulk,interactive')}".encode()
    )

    rights = {name: keys.of({"x-api-key": name}) for name in "abc"}
    assert {
        "a": (("interactive", "bulk"), None),
        "b": (("bulk",), 6000),
        "c": (("interactive", "bulk"), None),
    } == {name: (key.lanes, key.quota) for name, key in rights.items() if key}


@pytest.mark.parametrize(
    "rights",
    [
        "lanes=",
        "lanes=fast",
        "quota=0",
        "quota=-1",
        "quota=1.5",
        "quota=many",
        "quota=1 quota=2",
        "admin=yes",
        "bulk",
    ],
)
def test_a_right_that_is_none_is_refused_at_the_start(rights, tmp_path):
    """Else a key would have more rights, or fewer, than its line seems to say."""
    (tmp_path / "keys").write_text(line("trainer", rights))

    with pytest.raises(SettingsError, match="api_keys_file"):
        Keys.read(tmp_path / "keys")


BODIES = {
    "/score": request(),
    "/rank": {"prompt": SECRET, "images": [b64(png())]},
    "/questions": {"prompts": ["a red dog"]},
}


@pytest.mark.parametrize(("path", "body"), BODIES.items(), ids=BODIES)
@pytest.mark.parametrize("lane", ["interactive", "bulk"])
async def test_a_key_uses_the_lanes_of_its_line_alone(serve, tmp_path, caplog, path, body, lane):
    """403 for the other one; a request that names none gets the one that the key may use."""
    (tmp_path / "keys").write_text(line("k", f"lanes={lane}"))
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
        ("/rank", {"prompt": "a", "images": [b64(png())] * 3}, 3),
        (
            "/rank",
            {"prompt": "a", "images": [b64(png())] * 3, "cascade": {"metric": "clipscore", "keep": 2}},
            5,
        ),
        ("/questions", {"prompts": ["a red dog", "a blue cat"]}, 2),
    ],
    ids=["score", "rank", "cascade", "questions"],
)
async def test_a_quota_is_charged_for_every_item_under_every_metric(serve, tmp_path, path, body, pairs):
    """The request fits once, not twice; one pair more never fits, and waiting would not help."""
    (tmp_path / "keys").write_text(line("fits", f"quota={pairs}") + line("never", f"quota={pairs - 1}"))
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
    (tmp_path / "keys").write_text(line("k", "quota=1 lanes=interactive"))
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


async def test_a_changed_file_changes_who_is_let_in(serve, tmp_path, monkeypatch):
    """New keys come in and old ones stay out, without a restart."""
    monkeypatch.setattr(keys, "AGAIN_S", 0.0)
    (tmp_path / "keys").write_text(line("old"))
    async with serve(server={"api_keys_file": tmp_path / "keys"}) as client:
        before = [(await client.get("/models", headers=named(key))).status_code for key in ("old", "new")]
        (tmp_path / "keys").write_text(line("new"))
        after = [(await client.get("/models", headers=named(key))).status_code for key in ("old", "new")]

    assert ([200, 401], [401, 200]) == (before, after)


async def test_the_file_is_read_again_a_second_after_it_was(tmp_path):
    """Not at every request."""
    now = [0.0]
    file = tmp_path / "keys"
    file.write_text(line("old"))
    watched = KeyFile(file, lambda: now[0])
    file.write_text(line("new"))

    now[0] = keys.AGAIN_S / 2
    assert (await watched.keys()).of({"x-api-key": "old"})
    now[0] = keys.AGAIN_S
    assert (await watched.keys()).of({"x-api-key": "new"})
    assert not (await watched.keys()).of({"x-api-key": "old"})


@pytest.mark.parametrize(
    "broken", [b"", b"k:secret", b"\xff", None], ids=["empty", "in the clear", "bytes", "gone"]
)
async def test_a_file_that_became_wrong_keeps_the_keys_and_is_one_line_in_the_log(tmp_path, caplog, broken):
    """However often it is read; nothing of it is in the line."""
    now = [0.0]
    file = tmp_path / "keys"
    file.write_text(line("k"))
    watched = KeyFile(file, lambda: now[0])
    file.write_bytes(broken) if broken is not None else file.unlink()
    for _ in range(3):
        now[0] += keys.AGAIN_S
        assert (await watched.keys()).of({"x-api-key": "k"})

    [record] = caplog.records
    assert "api_keys_file" in record.message
    assert "secret" not in caplog.text
    file.write_text(line("mended"))
    now[0] += keys.AGAIN_S
    assert (await watched.keys()).of({"x-api-key": "mended"})


async def test_the_file_is_read_off_the_event_loop_and_once_for_all_who_come(tmp_path, monkeypatch):
    """Others are served meanwhile; one that hangs keeps nobody for longer than it may."""
    monkeypatch.setattr(keys, "READ_S", 0.01)
    now, reads, held = [0.0], [], threading.Event()
    file = tmp_path / "keys"
    file.write_text(line("old"))
    watched = KeyFile(file, lambda: now[0])

    def read(path):
        reads.append(threading.current_thread())
        assert held.wait(10)
        return Keys.parse(line("new").encode())

    monkeypatch.setattr(Keys, "read", read)
    now[0] = keys.AGAIN_S
    met = await asyncio.gather(*(watched.keys() for _ in range(5)))
    held.set()
    now[0] = 2 * keys.AGAIN_S
    monkeypatch.setattr(keys, "READ_S", 10)
    after = await watched.keys()

    assert all(each.of({"x-api-key": "old"}) for each in met)
    assert after.of({"x-api-key": "new"})
    assert threading.main_thread() not in reads
    assert len(reads) <= 2


def fifo(path):
    os.mkfifo(path)


def large(path):
    path.write_text("# much\n" * (keys.MAX_BYTES // 7 + 1))


@pytest.mark.parametrize(
    ("make", "told"), [(fifo, "not a regular file"), (large, "larger than 1 MiB"), (Path.mkdir, "Is a dir")]
)
async def test_what_is_no_file_of_keys_is_neither_waited_for_nor_read_whole(tmp_path, make, told, caplog):
    """At the start it is an error; later the keys that were read before stay."""
    file, now = tmp_path / "keys", [0.0]
    file.write_text(line("k"))
    watched = KeyFile(file, lambda: now[0])
    file.unlink()
    make(file)
    now[0] = keys.AGAIN_S

    assert (await watched.keys()).of({"x-api-key": "k"})
    assert told in caplog.text
    with pytest.raises(SettingsError, match=rf"api_keys_file: .*{told}"):
        Keys.read(file)
