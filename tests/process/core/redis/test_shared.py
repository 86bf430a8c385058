"""Services that share a Redis with a password and TLS, and what is said where they cannot."""

import logging
from contextlib import contextmanager

import httpx
import pytest
import trustme

from demo.process import HOST, free_port
from service.core.redis import RedisClient, RedisFailed
from service.core.settings import SettingsError
from service.questions.stores.redis import PREFIX, RedisStore
from service.wiring.load import load_settings
from tests.app.questions.test_stores import MADE
from tests.process.core.redis.test_client import answering
from tests.support.pictures import item
from tests.support.redis_server import PATIENT_S, redis_server, tls_options

pytestmark = pytest.mark.anyio

PASSWORD = "s3cret"


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def ca_file(authority, tmp_path):
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


@contextmanager
def secured(folder, certificate, *options):
    """A redis-server with a password and a port for TLS alone beside the tests' own; its addresses."""
    tls_port = free_port(0)
    tls = tls_options(folder, certificate, tls_port)
    with redis_server(folder, *tls, "--requirepass", PASSWORD, *options) as server:
        server.url = f"redis://:{PASSWORD}@{server.place}/0"
        server.tls = f"rediss://:{PASSWORD}@{HOST}:{tls_port}/0"
        yield server


def dsg(*items):
    return {"items": list(items), "metrics": ["dsg", "vqascore"]}


async def post(client: httpx.AsyncClient, body):
    answer = await client.post("/score", json=body)
    assert 200 == answer.status_code
    return answer.json()["results"][0]


async def test_services_share_one_redis_by_password_and_tls(serve, fakes, tmp_path, authority, ca_file):
    """The second one asks neither the question LLM nor a model, and its scores are the same."""
    with secured(tmp_path, authority.issue_cert(HOST)) as server:
        cache = {"questions": server.tls, "scores": server.tls, "redis_ca_file": str(ca_file)}
        async with serve(cache=cache) as one:
            first = await post(one, dsg(item("a red dog")))
        async with serve(cache=cache) as two:
            second = await post(two, dsg(item("a red dog")))
        held = server.held()

    assert {"dsg", "vqascore"} == first["scores"].keys()
    assert first["scores"] == second["scores"]
    assert 1 == len(fakes["questions"].calls)
    assert {b"scoregate"} == {key.split(b":")[0] for key in held}


async def said(url, caplog, ca_file=None):
    """The one line of the log about a Redis that cannot be used."""
    caplog.clear()
    caplog.set_level(logging.INFO)
    async with RedisClient("scores", url, ca_file=ca_file, timeout_s=PATIENT_S) as client:
        with pytest.raises(RedisFailed):
            await client.do(lambda redis: redis.get("a"))
        missing = client.missing
    [line] = [r.getMessage() for r in caplog.records if r.name == "scoregate.redis"]
    assert line.endswith(missing)
    return line


async def test_a_certificate_of_an_unknown_authority_is_not_trusted(tmp_path, authority, caplog):
    """Neither without an authority nor with another one."""
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    with secured(tmp_path, authority.issue_cert(HOST)) as server:
        lines = [await said(server.tls, caplog), await said(server.tls, caplog, other)]

    assert all("its certificate is not trusted: " in line and PASSWORD not in line for line in lines)


async def test_a_certificate_for_another_host_is_not_trusted(tmp_path, authority, ca_file, caplog):
    """Whoever signed it."""
    with secured(tmp_path, authority.issue_cert("127.0.0.2")) as server:
        line = await said(server.tls, caplog, ca_file)

    assert "its certificate is not trusted: IP address mismatch" in line


async def test_a_server_that_does_not_speak_tls_is_said_to_be_that(caplog):
    """A wrong port is the usual mistake."""
    async with answering(b"-ERR what?\r\n") as (url, _):
        line = await said(url.replace("redis:", "rediss:"), caplog)

    assert "cannot be used: TLS failed (" in line


@pytest.mark.parametrize("user", [":wr0ng@", "someone:wr0ng@", ""])
async def test_a_wrong_or_missing_password_is_said_to_be_that(tmp_path, authority, ca_file, caplog, user):
    """Whichever of the three it is; the password is not shown."""
    with secured(tmp_path, authority.issue_cert(HOST)) as server:
        line = await said(server.tls.replace(f":{PASSWORD}@", user), caplog, ca_file)

    assert line.endswith("it refuses the user or the password, or requires one")
    assert "wr0ng" not in line


async def test_a_redis_without_hello_is_too_old(tmp_path, caplog):
    """HELLO came with Redis 6.0: an older one answers as this one does that was told to forget it."""
    with redis_server(tmp_path, "--rename-command", "HELLO", "") as old:
        line = await said(old.url, caplog)

    assert line.endswith("it lacks a command; Redis 6.0 or later is needed")


async def test_the_documented_acl_is_enough(serve, tmp_path, authority, ca_file):
    """A user of its own, who may touch nothing but `scoregate:`."""
    rules = "on >pw ~scoregate:* resetchannels +@read +@write +@transaction +@connection"
    with secured(tmp_path, authority.issue_cert(HOST), "--user", "scoregate", *rules.split()) as server:
        address = server.tls.replace(f":{PASSWORD}@", "scoregate:pw@")
        cache = {"questions": address, "scores": address, "redis_ca_file": str(ca_file)}
        async with serve(cache=cache) as client:
            scored = await post(client, dsg(item("a red dog")))
            caches = (await client.get("/readyz")).json()["caches"]

    assert {"dsg", "vqascore"} == scored["scores"].keys()
    assert {"questions": "ready", "scores": "ready"} == caches


async def test_with_a_ttl_a_set_and_its_lookup_key_expire_together(serve, redis):
    """No key outlives what it points at."""
    async with serve(cache={"questions": redis.url, "questions_ttl_s": 1000}) as client:
        await post(client, dsg(item("a red dog")))
    left = [redis.do("TTL", key) for key in redis.held()]

    assert 2 == len(left)
    assert all(990 < seconds <= 1000 for seconds in left)


async def test_without_a_ttl_sets_do_not_expire(serve, redis):
    """Two keys, no expiry."""
    async with serve(cache={"questions": redis.url}) as client:
        await post(client, dsg(item("a red dog")))

    assert [-1, -1] == [redis.do("TTL", key) for key in redis.held()]


async def test_a_set_that_has_expired_for_all_has_expired_in_memory(serve, fakes, redis):
    """Or two services would score one prompt by different questions."""
    async with serve(cache={"questions": redis.url, "questions_ttl_s": 1000, "scores": "off"}) as client:
        await post(client, dsg(item("a red dog")))
        for key in redis.held():
            redis.do("DEL", key)
        await post(client, dsg(item("a red dog")))

    assert 2 == len(fakes["questions"].calls)


async def test_a_set_known_under_another_lookup_key_lives_as_long_as_the_newest(redis):
    """Its expiry begins anew when a second lookup key comes to point at it."""
    async with RedisClient("questions", redis.url, timeout_s=PATIENT_S) as client:
        store = RedisStore(client, in_memory=8, ttl_s=1000)
        made = MADE
        await store.put("one", made)
        redis.do("EXPIRE", PREFIX + made.id, 5)
        await store.put("two", made)

    assert redis.do("TTL", PREFIX + made.id) >= redis.do("TTL", PREFIX + "two") > 900


def test_settings_of_a_redis_without_one_are_refused(tmp_path, ca_file):
    """One line that names the setting; a file without certificates is none."""
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    wrong = {
        "questions_ttl_s needs a Redis": {"SCOREGATE_CACHE__QUESTIONS_TTL_S": "1000"},
        "redis_ca_file needs an address": {"SCOREGATE_CACHE__REDIS_CA_FILE": str(ca_file)},
        "no PEM file of certificates": {
            "SCOREGATE_CACHE__SCORES": "rediss://h",
            "SCOREGATE_CACHE__REDIS_CA_FILE": str(empty),
        },
    }
    for message, environment in wrong.items():
        with pytest.raises(SettingsError, match=message):
            load_settings(None, environment)
