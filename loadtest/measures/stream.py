"""Times of a streamed request: its first line and its end, over the time of one response."""

from contextlib import closing
from http.client import HTTPConnection
from random import Random
from statistics import median
from time import perf_counter

import orjson

from demo.process import HOST
from loadtest import corpus, servers
from loadtest.report import Report, Size
from loadtest.servers import Server, item
from loadtest.simulate import Shape

# A batch of 16 takes 200 ms, so that a request of 128 takes eight.
SHAPE = Shape(fixed_ms=40, per_call_ms=10, max_items=16)
ITEMS = 128


def measure(report: Report, size: Size) -> None:
    """Report the time to the first score and to the last line, over the time of one response, in turns."""
    random, firsts, totals = Random(3), [], []
    texts, images = corpus.prompts(random), corpus.distinct("rl", random)
    with servers.timed(SHAPE) as server:
        for _ in range(size.rounds):
            bodies = [
                orjson.dumps({"items": [item(next(texts), next(images)) for _ in range(ITEMS)]})
                for _ in range(2)
            ]
            whole = server.post_s(bodies[0])
            first, total = streamed_s(server, bodies[1])
            firsts.append(first / whole)
            totals.append(total / whole)
    note = f"a request of {ITEMS}, batches of {SHAPE.max_items}; whole: {whole:.2f} s in the last round"
    report.add("stream_first_over_whole", median(firsts), note=note)
    report.add("stream_over_whole", median(totals))


def streamed_s(server: Server, body: bytes) -> tuple[float, float]:
    """Return the seconds until the first line and until the end.  Raises `AssertionError` for an error."""
    with closing(HTTPConnection(HOST, server.port)) as connection:
        connection.connect()
        began = perf_counter()
        connection.request("POST", "/score?stream=1", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        first = orjson.loads(answer.readline())
        first_s = perf_counter() - began
        *_, last = answer.read().splitlines()
        total_s = perf_counter() - began
    assert first.get("scores"), first
    assert orjson.loads(last).get("done"), last
    return first_s, total_s
