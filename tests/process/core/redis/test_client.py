"""One Redis: bounded, silent about passwords, missed once and found again."""

import asyncio
import logging
import time
from contextlib import asynccontextmanager

import pytest

from demo.process import HOST
from service.core.redis import CONNECTIONS, RedisClient, RedisFailed
from service.observability.instruments import Instruments
from tests.support.redis_server import PATIENT_S, redis_server

pytestmark = pytest.mark.anyio

SHORT_S = 0.05


@asynccontextmanager
async def client_of(url, **options):
    """A client that looks again only when it is told to."""
    instruments = Instruments([])
    forever = asyncio.Event()
    failed = instruments.cache_errors.labels("scores").inc
    looking = {"failed": failed, "sleep": lambda _: forever.wait(), "timeout_s": PATIENT_S, **options}
    async with RedisClient("scores", url, **looking) as client:
        client.instruments = instruments
        yield client


@asynccontextmanager
async def answering(reply):
    """A server that is no Redis: sends *reply* to whoever connects, if there is one, and counts them."""
    callers = []

    async def serve(reader, writer):
        callers.append(writer)
        if reply is not None:
            writer.write(reply)
            writer.write_eof()

    async with await asyncio.start_server(serve, HOST, 0) as server:
        yield f"redis://{HOST}:{server.sockets[0].getsockname()[1]}", callers
        for writer in callers:
            writer.close()


def lines(caplog):
    """What the client logged, as (level, message)."""
    return [(r.levelname, r.getMessage()) for r in caplog.records if r.name == "scoregate.redis"]


def errors(client):
    return client.instruments.registry.get_sample_value("scoregate_cache_errors_total", {"cache": "scores"})


async def ping(redis):
    return await redis.ping()


async def test_a_server_that_never_answers_takes_its_timeout_once():
    """The look that finds it dead waits; commands after it fail at once, on no connection."""
    async with answering(None) as (url, callers), client_of(url, timeout_s=SHORT_S) as client:
        connections = len(callers)
        outcomes = await asyncio.gather(*(client.do(ping) for _ in range(1000)), return_exceptions=True)

        assert "cannot be used: TimeoutError" == client.missing
        assert {"RedisFailed('TimeoutError')"} == {repr(outcome) for outcome in outcomes}
        assert (1000, connections) == (errors(client), len(callers))


async def test_commands_under_way_when_it_hangs_end_with_the_first_timeout(own_redis):
    """So do those that wait for a connection; once it goes on, a look finds it."""
    async with client_of(own_redis.url, timeout_s=SHORT_S) as client:
        own_redis.hang()
        began = time.monotonic()
        outcomes = await asyncio.gather(*(client.do(ping) for _ in range(1000)), return_exceptions=True)
        took = time.monotonic() - began
        own_redis.go_on()
        while client.missing:
            await client.look()

        assert {RedisFailed} == {type(outcome) for outcome in outcomes}
        assert took < 1000 / CONNECTIONS * SHORT_S / 2  # half of what it takes where each waits in turn
        assert await client.do(ping)


@pytest.mark.parametrize(
    "reply", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"$many\r\n", b":x\r\n", b"\xff\xff\r\n"]
)
async def test_what_is_no_redis_is_missing(reply):
    """Whatever it says: no exception but `RedisFailed` leaves the client."""
    async with answering(reply) as (url, _), client_of(url) as client:
        assert client.missing.startswith("cannot be used: ")
        with pytest.raises(RedisFailed):
            await client.do(ping)


async def test_an_outage_is_logged_once_and_the_server_found_again(own_redis, caplog):
    """One line when it begins and one when it ends; the instrument counts every command that failed."""
    caplog.set_level(logging.INFO)
    async with client_of(own_redis.url) as client:
        assert await client.do(ping)
        own_redis.kill()
        for _ in range(3):
            with pytest.raises(RedisFailed):
                await client.do(ping)
        await client.look()
        missing = client.missing
        own_redis.start()
        await client.look()

        assert await client.do(ping)
        assert ("cannot be used: ConnectionError", "") == (missing, client.missing)
        assert 3 == errors(client)
    name = f"the Redis of the cache scores, {own_redis.place},"
    expected = [("WARNING", f"{name} cannot be used: ConnectionError"), ("INFO", f"{name} is back")]
    assert expected == lines(caplog)


async def test_it_is_looked_at_by_itself(own_redis):
    """Nobody has to ask for a Redis to be found again."""
    turn = asyncio.Queue()
    own_redis.kill()
    async with RedisClient(
        "scores", own_redis.url, sleep=lambda _: turn.get(), timeout_s=PATIENT_S
    ) as client:
        assert client.missing
        own_redis.start()
        while client.missing:
            turn.put_nowait(None)
            await asyncio.sleep(0.001)

        assert await client.do(ping)


async def test_a_server_restarted_between_two_commands_is_not_missed(own_redis):
    """Its old connections are broken, and a new one is tried at once."""
    async with client_of(own_redis.url) as client:
        await asyncio.gather(*(client.do(ping) for _ in range(CONNECTIONS)))
        own_redis.kill()
        own_redis.start()

        assert [True] * CONNECTIONS == await asyncio.gather(*(client.do(ping) for _ in range(CONNECTIONS)))
        assert 0 == errors(client)


async def test_a_command_that_is_refused_stops_no_other(tmp_path, caplog):
    """A full Redis keeps answering what it holds; the log tells it once."""
    with redis_server(tmp_path, "--maxmemory", "1", "--maxmemory-policy", "noeviction") as full:
        async with client_of(full.url) as client:
            for _ in range(2):
                with pytest.raises(RedisFailed, match="OutOfMemoryError"):
                    await client.do(lambda redis: redis.set("a", "b"))

            assert await client.do(lambda redis: redis.get("a")) is None
            assert ("", 2) == (client.missing, errors(client))
        name = f"the Redis of the cache scores, {full.place},"
        assert [("WARNING", f"{name} refuses commands: OutOfMemoryError")] == lines(caplog)


async def test_a_password_opens_it_and_is_never_shown(tmp_path, caplog):
    """Neither the right one nor a wrong one, in logs or errors."""
    with redis_server(tmp_path, "--requirepass", "s3cret/ä") as closed:
        right = closed.url.replace("//", "//:s3cret%2F%C3%A4@")
        wrong = closed.url.replace("//", "//someone:wr0ng@")
        async with client_of(right) as client:
            assert await client.do(ping)
        async with client_of(wrong) as client:
            with pytest.raises(RedisFailed, match="AuthenticationError") as failed:
                await client.do(ping)
            shown = f"{client.missing} {failed.value} {lines(caplog)}"

    assert closed.place in shown
    assert not any(word in shown for word in ("s3cret", "wr0ng", "someone"))


async def test_a_socket_is_an_address_too(redis):
    """`unix://` and a path."""
    async with client_of(f"unix://{redis.socket}?db=1") as client:
        assert await client.do(lambda redis: redis.set("a", "b"))

    assert ["db1"] == list(redis.do("INFO", "keyspace"))


async def test_a_caller_who_leaves_leaves_no_answer_behind(redis):
    """The next command on the connection gets its own answer."""
    async with client_of(redis.url) as client:
        await client.do(lambda redis: redis.set("a", "1"))
        slow = asyncio.create_task(client.do(lambda redis: redis.blpop("never", 0)))
        while not int(redis.do("INFO", "clients")["blocked_clients"]):
            await asyncio.sleep(0.001)
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)

        assert [b"1"] * 50 == [await client.do(lambda redis: redis.get("a")) for _ in range(50)]
        assert 0 == errors(client)
