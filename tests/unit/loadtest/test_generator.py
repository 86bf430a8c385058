"""The generator and its client, without a server under test."""

import asyncio
import json

import pytest

from loadtest.generator import Client, exchange, parse_head, send_under
from loadtest.wires import WIRES
from loadtest.workloads import Arrival, Plan
from tests.support.leaps import out_of_time


def test_an_answers_head_is_read():
    """Status and length, whatever the case of the names; without a length it is no answer for us."""
    assert (429, 12) == parse_head(b"HTTP/1.1 429 Too Many\r\nx: y\r\nCONTENT-LENGTH: 12\r\n\r\n")
    with pytest.raises(ValueError, match="Content-Length"):
        parse_head(b"HTTP/1.1 200 OK\r\n\r\n")


@pytest.mark.anyio
async def test_the_client_keeps_its_connection_and_tells_a_broken_one():
    """Two exchanges over one connection; the third time the server hangs up."""
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        for _ in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(parse_head(b"HTTP/1.1 0 \r\n" + head)[1])
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async with (
        await asyncio.start_server(answer, "127.0.0.1", 0) as server,
        Client(*server.sockets[0].getsockname()) as client,
    ):
        assert (200, b"one") == await client.post("/score", b"one")
        assert (200, b"two") == await client.post("/score", b"two")
        with pytest.raises(ConnectionResetError):
            await client.post("/score", b"three")

    assert 1 == connections


class Answering:
    """Stands in for the client."""

    def __init__(self, status, body):
        self.answer = status, json.dumps(body).encode()

    async def post(self, path, body):
        return self.answer


class Broken(Answering):
    async def post(self, path, body):
        raise ConnectionRefusedError


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("client", "kind", "scored"),
    [
        (Answering(200, {"results": [{"scores": {"vqascore": 0.5}}, {"scores": {"vqascore": 1}}]}), "ok", 2),
        (Answering(200, {"results": [{"scores": {}}, {"scores": {"vqascore": 1}}]}), "error", 1),
        (Answering(429, {"code": "lane_full", "retry_after_s": 4.5}), "refused", 0),
        (Broken(0, {}), "error", 0),
    ],
)
async def test_what_came_of_a_request_is_noted(client, kind, scored):
    """The status, the scores, and what a refusal said."""
    noted = await exchange(client, Arrival(0.0, 2, "bulk", b"{}"), 0.0, 0.0, 1.0)

    assert (kind, scored) == (noted.kind, noted.scored)
    assert (4.5 if kind == "refused" else None) == noted.retry_after_s


@pytest.mark.anyio
async def test_a_connection_that_the_server_closes_is_not_used_again():
    """gunicorn's synchronous worker closes each; the next request opens a new one."""
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(parse_head(b"HTTP/1.1 0 \r\n" + head)[1])
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
        writer.close()

    async with (
        await asyncio.start_server(answer, "127.0.0.1", 0) as server,
        Client(*server.sockets[0].getsockname()) as client,
    ):
        assert [(200, b"ok")] * 2 == [await client.post("/score", b"{}") for _ in range(2)]

    assert 2 == connections


@pytest.mark.anyio
async def test_bulk_goes_on_for_as_long_as_the_others_last():
    """Two callers send three bulk requests again and again, until both interactive ones are answered."""
    sent = []

    class Noting:
        async def post(self, path, body):
            sent.append(body)
            await asyncio.sleep(0)
            if body == b"interactive":  # it waits until bulk has come round again
                until = len(sent) + 4
                while len(sent) < until:
                    await asyncio.sleep(0)
            return 200, b'{"results": [{"scores": {"vqascore": 1}}]}'

    bulk = [Arrival(0.0, 1, "bulk", body) for body in (b"one", b"two", b"three")]
    requests = Plan([*bulk, *(Arrival(0.0, 1, "interactive", b"interactive"),) * 2], 1, background=2)
    outcomes = await out_of_time(
        send_under(Noting(), requests, 0.0, 10.0, WIRES["scoregate"]), lambda: len(sent) > 3
    )

    assert ["interactive"] * 2 == [outcome.lane for outcome in outcomes[:2]]
    assert {"bulk"} == {outcome.lane for outcome in outcomes[2:]}
    assert 3 < len(outcomes[2:])
    assert {"ok"} == {outcome.kind for outcome in outcomes}


@pytest.mark.anyio
async def test_a_request_in_parts_is_as_good_as_its_worst_part():
    """infinity takes a pair in two requests."""

    class HalfBroken:
        async def post(self, path, body):
            return (200, b"{}") if body == b"good" else (422, b"{}")

    arrival = Arrival(0.0, 1, "bulk", b"good", (b"bad",))
    noted = await exchange(HalfBroken(), arrival, 0.0, 0.0, 1.0, WIRES["infinity"])

    assert (422, "error", 0) == (noted.status, noted.kind, noted.scored)
