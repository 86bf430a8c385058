"""
Sends requests when they are due.

Open loop: a request is sent when it is due, whatever became of those before, and its latency counts from
then.  A generator that waits for answers slows down with the server and hides its queue.
"""

import asyncio
from time import monotonic

import orjson

from loadtest.generator.client import Client
from loadtest.results import Outcome
from loadtest.workloads.spec import Arrival, Plan

AHEAD_S = 0.2  # from the start of the clock to the first arrival


async def send(requests: Plan, host: str, port: int, timeout_s: float) -> list[Outcome]:
    """One outcome per request, in the order of the plan."""
    async with Client(host, port) as client:
        if requests.concurrency is not None:
            return await send_closed(client, requests, monotonic(), timeout_s)
        begin = monotonic() + AHEAD_S
        tasks = []
        for arrival in requests.arrivals:
            await asyncio.sleep(begin + arrival.at_s - monotonic())
            tasks.append(asyncio.create_task(exchange(client, arrival, begin, arrival.at_s, timeout_s)))
        return await asyncio.gather(*tasks)


async def send_closed(client: Client, requests: Plan, begin: float, timeout_s: float) -> list[Outcome]:
    """With so many at once; each is due when its turn comes."""
    turns = asyncio.Semaphore(requests.concurrency or 1)

    async def in_turn(arrival: Arrival) -> Outcome:
        async with turns:
            return await exchange(client, arrival, begin, monotonic() - begin, timeout_s)

    return await asyncio.gather(*(in_turn(arrival) for arrival in requests.arrivals))


async def exchange(client: Client, arrival: Arrival, begin: float, due_s: float, timeout_s: float) -> Outcome:
    """Send one request and note what came of it."""
    sent_s = monotonic() - begin
    status, body, failure = 0, b"", ""
    try:
        async with asyncio.timeout(timeout_s + 1):  # the server's own word for it comes first
            status, body = await client.post("/score", arrival.body)
    except TimeoutError:
        failure = "timeout"
    except (OSError, ValueError) as exc:
        failure = type(exc).__name__
    done_s = monotonic() - begin
    # Parsed here and not after the run, which would need all bodies: an answer has some 300 bytes.
    answer = orjson.loads(body) if status else {}
    scored = sum(1 for result in answer.get("results", ()) if result["scores"])
    return Outcome(
        due_s=due_s,
        sent_s=sent_s,
        done_s=done_s,
        lane=arrival.lane,
        items=arrival.items,
        scored=scored,
        status=status,
        failure=failure or answer.get("code", ""),
        retry_after_s=answer.get("retry_after_s"),
    )
