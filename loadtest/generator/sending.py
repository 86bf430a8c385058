"""
Sends requests when they are due.

Open loop: a request is sent when it is due, whatever happened to those before, and its latency counts from
then.  A generator that waits for responses slows down with the server and hides its queue.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from time import monotonic

from loadtest.generator.client import Client
from loadtest.generator.wires import WIRES, Answer, Wire
from loadtest.results import Outcome
from loadtest.workloads.spec import Arrival, Plan

AHEAD_S = 0.2  # from the start of the clock to the first arrival
FILLING_S = 1.0  # from the first background request to the first measured one
OURS = WIRES["scoregate"]


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
