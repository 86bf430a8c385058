"""
`python -m loadtest.generator HOST PORT SPEC FILE`: send a workload, write the results of its requests.

Open loop: a request is sent when it is due, whatever happened to those before, and its latency counts from
then.  A generator that waits for responses slows down with the server and hides its queue.
"""

import asyncio
import gc
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import cycle
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Self

import orjson

from loadtest.results import Outcome
from loadtest.wires import WIRES, Answer, Wire
from loadtest.workloads import Arrival, Plan, Spec, plan

AHEAD_S = 0.2  # the first arrival is so long after the start of the clock
FILLING_S = 1.0  # background requests start so long before measured ones
OURS = WIRES["scoregate"]
STALE_S = 2.0  # below the keep-alive time of any server: older idle connections are replaced


@dataclass(slots=True)
class Connection:
    """A connection, when it was last used, and whether the server closes it after this response."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    used: float = field(default_factory=monotonic)
    closing: bool = False


class Client:
    """
    A pool of connections to one server: a small HTTP/1.1 client.

    The cost of a general one would be measured with the server's.  Keeps connections open, as many as there
    are concurrent requests; sends prepared JSON bodies; reads responses with a Content-Length, as all tested
    servers send.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._idle: list[Connection] = []

    async def __aenter__(self) -> Self:
        """Return the client; connections are opened on demand."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        for connection in self._idle:
            connection.writer.close()

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """
        Send a request; return the response's status and body.

        Raises:
            OSError: the connection failed.
            ValueError: the response has no Content-Length.
        """
        connection = await self._connect()
        try:
            answer = await self._exchange(connection, path, body)
        except BaseException:
            connection.writer.close()  # its response is incomplete
            raise
        if connection.closing:
            connection.writer.close()
        else:
            connection.used = monotonic()
            self._idle.append(connection)
        return answer

    async def _connect(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if monotonic() - connection.used < STALE_S:
                return connection
            connection.writer.close()
        return Connection(*await asyncio.open_connection(self._host, self._port, limit=2**22))

    async def _exchange(self, connection: Connection, path: str, body: bytes) -> tuple[int, bytes]:
        request = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        connection.writer.write(request.encode() + body)
        try:
            head = await connection.reader.readuntil(b"\r\n\r\n")
            status, length = parse_head(head)
            connection.closing = b"\r\nconnection: close\r\n" in head.lower()
            return status, await connection.reader.readexactly(length)
        except asyncio.IncompleteReadError as exc:
            raise ConnectionResetError("the server closed the connection") from exc


def parse_head(head: bytes) -> tuple[int, int]:
    """Return status and Content-Length.  Raises `ValueError` if there is none."""
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
    if "content-length" not in fields:
        raise ValueError("an answer without a Content-Length")
    return int(first.split(" ", 2)[1]), int(fields["content-length"])


def written(requests: Plan, wire: Wire) -> Plan:
    """Convert the plan's bodies to the format of *wire*."""
    arrivals = []
    for arrival in requests.arrivals:
        body, *more = wire.written(arrival.body)
        arrivals.append(replace(arrival, body=body, more=tuple(more)))
    return replace(requests, arrivals=arrivals)


async def send(requests: Plan, host: str, port: int, timeout_s: float, wire: Wire = OURS) -> list[Outcome]:
    """Return an outcome per request, in the order of the plan; background requests in the order they end."""
    async with Client(host, port) as client:
        if requests.background:
            return await send_under(client, requests, monotonic(), timeout_s, wire)
        if requests.concurrency is not None:
            return await send_closed(client, requests, monotonic(), timeout_s, wire)
        begin = monotonic() + AHEAD_S
        tasks = []
        for arrival in requests.arrivals:
            await asyncio.sleep(begin + arrival.at_s - monotonic())
            tasks.append(asyncio.create_task(exchange(client, arrival, begin, arrival.at_s, timeout_s, wire)))
        return await asyncio.gather(*tasks)


async def send_closed(
    client: Client, requests: Plan, begin: float, timeout_s: float, wire: Wire
) -> list[Outcome]:
    """Send with limited concurrency; each request is due when its turn comes."""
    turns = asyncio.Semaphore(requests.concurrency or 1)

    async def in_turn(arrival: Arrival) -> Outcome:
        async with turns:
            return await exchange(client, arrival, begin, monotonic() - begin, timeout_s, wire)

    return await asyncio.gather(*(in_turn(arrival) for arrival in requests.arrivals))


async def send_under(
    client: Client, requests: Plan, begin: float, timeout_s: float, wire: Wire
) -> list[Outcome]:
    """Send the interactive requests while those of the lane `bulk` are repeated."""
    bulk = [arrival for arrival in requests.arrivals if arrival.lane == "bulk"]
    waited = [arrival for arrival in requests.arrivals if arrival.lane != "bulk"]
    behind: list[Outcome] = []

    async def again(arrivals: Sequence[Arrival]) -> None:
        for arrival in cycle(arrivals):
            outcome = await exchange(client, arrival, begin, monotonic() - begin, timeout_s, wire)
            behind.append(outcome)

    tasks = [
        asyncio.create_task(again(bulk[first :: requests.background])) for first in range(requests.background)
    ]
    await asyncio.sleep(FILLING_S)
    outcomes = await send_closed(client, replace(requests, arrivals=waited), begin, timeout_s, wire)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return [*outcomes, *behind]


async def exchange(
    client: Client, arrival: Arrival, begin: float, due_s: float, timeout_s: float, wire: Wire = OURS
) -> Outcome:
    """Send one request and record its outcome."""
    sent_s = monotonic() - begin
    status, bodies, failure = 0, [b""], ""
    try:
        async with asyncio.timeout(timeout_s + 1):  # the server's own timeout comes first
            if arrival.more:
                status, bodies = await parts(client, arrival, wire)
            else:
                status, bodies[0] = await client.post(wire.path, arrival.body)
    except TimeoutError:
        failure = "timeout"
    except (OSError, ValueError) as exc:
        failure = type(exc).__name__
    done_s = monotonic() - begin
    # Parsed during the run, so that bodies need not be kept; a response has some 300 bytes.
    answer = wire.read(status, bodies) if status else Answer()
    return Outcome(
        due_s=due_s,
        sent_s=sent_s,
        done_s=done_s,
        lane=arrival.lane,
        items=arrival.items,
        scored=len(answer.scores),
        status=status,
        failure=failure or answer.failure,
        retry_after_s=answer.retry_after_s,
    )


async def parts(client: Client, arrival: Arrival, wire: Wire) -> tuple[int, list[bytes]]:
    """Send all bodies of a request concurrently; return the worst status, and the responses."""
    sent = (client.post(wire.path, body) for body in (arrival.body, *arrival.more))
    answers = await asyncio.gather(*sent)
    return max(status for status, _ in answers), [body for _, body in answers]


def main(argv: Sequence[str] | None = None) -> None:
    """Run one spec, given as JSON."""
    host, port, spec, file = sys.argv[1:] if argv is None else argv
    wanted = Spec(**orjson.loads(spec))
    wire = WIRES[wanted.wire]
    requests = written(plan(wanted), wire)
    gc.collect()
    gc.freeze()  # collecting these bodies would add to a request's latency
    outcomes = asyncio.run(send(requests, host, int(port), wanted.timeout_ms / 1000, wire))
    Path(file).write_bytes(orjson.dumps([asdict(outcome) for outcome in outcomes]))


if __name__ == "__main__":
    main()
