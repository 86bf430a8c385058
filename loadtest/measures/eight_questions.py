"""Eight questions about one picture: by the service, and in a loop."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from random import Random
from statistics import median
from time import perf_counter

import orjson

from demo.process import HOST
from loadtest import corpus
from loadtest.items import item
from loadtest.report import Report
from loadtest.servers import Server
from loadtest.sizes import Size


def measure(report: Report, size: Size, through: Sequence[Server]) -> None:
    """
    Report the time of eight questions in a loop over that of the service, each at its best thread count.
    """
    pictures = corpus.distinct("rl", Random(0))
    body = {"metrics": ["dsg"], "options": {"dsg": {"question_set": corpus.QUESTION_SET}}}
    served: list[list[float]] = [[] for _ in through]
    looped: list[list[float]] = [[] for _ in through]
    with ExitStack() as stack:
        loops = [stack.enter_context(loop(threads)) for threads in size.threads]
        for _ in range(5 * size.rounds):
            for times, server in zip(served, through, strict=True):
                items = [item("a picture", next(pictures))]
                times.append(timed(server, orjson.dumps({"items": items, **body})))
            for times, process in zip(looped, loops, strict=True):
                times.append(float(exchange(process, "\n")))
    best = [min(median(times) for times in ways) for ways in (looped, served)]
    note = f"{1000 * best[1]:.0f} ms through the service, {1000 * best[0]:.0f} ms in a loop"
    report.add("eight_questions_over_loop", best[0] / best[1], note=note)


def timed(server: Server, body: bytes) -> float:
    """Return the seconds of one complete request, sent by a client with minimal overhead."""
    with closing(HTTPConnection(HOST, server.port)) as connection:
        connection.connect()
        began = perf_counter()
        connection.request("POST", "/score", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        seconds = perf_counter() - began
    if answer.status != 200 or orjson.loads(content)["partial"]:
        raise SystemExit(f"POST /score: {answer.status} {content[:300]!r}")
    return seconds


@contextmanager
def loop(
    threads: str, way: str = "calls", questions: str = str(len(corpus.QUESTION_SET))
) -> Iterator["subprocess.Popen[str]"]:
    """Start `loadtest.loops` as a process; yield it when it is ready."""
    command = (sys.executable, "-m", "loadtest.loops", way, threads, questions)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        exchange(process, "")
        yield process


def exchange(process: "subprocess.Popen[str]", line: str) -> str:
    """Write *line*, read one."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line)
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise SystemExit("the loop ended early")
    return answer
