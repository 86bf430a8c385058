"""What the demo models are asked, and what they are not asked twice: figures of the demo profile."""

import base64
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

import orjson

from loadtest import corpus, servers
from loadtest.report import Report, tally
from loadtest.results import count, throughput
from loadtest.servers import Server
from loadtest.sizes import Size
from loadtest.workloads import Spec
from models.demo.serve import HOST

COLOURS = ("red", "green", "blue", "yellow")
TEXTS = [f"Is there a {colour} {shape}?" for colour in COLOURS for shape in ("circle", "square")]
ASKED = [f"{text} Please answer yes or no." for text in TEXTS]  # as dsg asks them
SET = [{"id": n, "kind": "entity", "text": text, "depends_on": []} for n, text in enumerate(TEXTS, 1)]
LLM_CALLS = 'scoregate_question_llm_calls_total{result="ok"}'


def measure(report: Report, size: Size) -> None:
    """Figures of the demo profile; all but the first with the last number of threads."""
    with ExitStack() as stack:
        through = [stack.enter_context(servers.demo(OMP_NUM_THREADS=threads)) for threads in size.threads]
        eight_questions(report, size, through)
        one_prompt(report, through[-1])
        alone_or_together(report, through[-1])
        burst(report, through[-1], size)


def eight_questions(report: Report, size: Size, through: Sequence[Server]) -> None:
    """Eight questions on one image through the service, against a loop; each at its best threads."""
    pictures = corpus.distinct("rl", Random(0))
    body = {"metrics": ["dsg"], "options": {"dsg": {"question_set": SET}}}
    served: list[list[float]] = [[] for _ in through]
    looped: list[list[float]] = [[] for _ in through]
    with ExitStack() as stack:
        loops = [stack.enter_context(loop(threads)) for threads in size.threads]
        for _ in range(5 * size.rounds):
            for times, server in zip(served, through, strict=True):
                item = {"prompt": "a picture", "image": base64.b64encode(next(pictures)).decode()}
                times.append(timed(server, orjson.dumps({"items": [item], **body})))
            for times, process in zip(looped, loops, strict=True):
                times.append(float(exchange(process, "\n")))
    best = [min(median(times) for times in ways) for ways in (looped, served)]
    note = f"{1000 * best[1]:.0f} ms through the service, {1000 * best[0]:.0f} ms in a loop"
    report.add("eight_questions_over_loop", best[0] / best[1], note=note)


def timed(server: Server, body: bytes) -> float:
    """Seconds of one request that must be answered in full, by a client that costs next to nothing."""
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
def loop(threads: str) -> Iterator["subprocess.Popen[str]"]:
    """The loop as a process, ready."""
    command = (sys.executable, "-m", "loadtest.loop", threads)
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
        raise SystemExit("loadtest.loop ended early")
    return answer


def one_prompt(report: Report, server: Server) -> None:
    """24 images of a prompt in 24 requests at once: how often the question LLM is called."""
    before = server.sample(LLM_CALLS)
    outcomes = server.run(Spec("one-prompt", metric="dsg"))
    note = f"24 requests at once: {tally(outcomes)}"
    report.add("question_llm_calls", server.sample(LLM_CALLS) - before, "calls", note)


def alone_or_together(report: Report, server: Server) -> None:
    """The largest difference between a pair's score alone and among 31 others."""
    random = Random(7)
    texts, pictures = corpus.prompts(random), corpus.distinct("rl", random)
    items = [{"prompt": next(texts), "image": base64.b64encode(next(pictures)).decode()} for _ in range(32)]
    together = scores(server, items)
    alone = [scores(server, [item])[0] for item in items]
    off = max(abs(one - other) for one, other in zip(alone, together, strict=True))
    report.add("alone_or_together", off, note="largest difference of 32 pairs, float32")


def scores(server: Server, items: list[dict[str, Any]]) -> list[float]:
    with server.client() as client:
        answer = client.post("/score", json={"items": items}).json()
    return [result["scores"]["vqascore"] for result in answer["results"]]


def burst(report: Report, server: Server, size: Size) -> None:
    """512 single-image requests at once, over the same images in requests of 128, in turns."""
    ratios, failures = [], 0
    scale = min(1.0, 4 * size.scale)  # a quarter of a burst says little of 512 sockets at once
    for seed in range(size.rounds):
        single = report.keep("demo profile", "rl-burst", server.run(Spec("rl-burst", seed, scale)))
        whole = report.keep("demo profile", "whole", server.run(Spec("whole", seed, scale)))
        ratios.append(throughput(single) / throughput(whole))
        failures += len(single) - count(single, "ok")
    note = f"{throughput(single):.0f} over {throughput(whole):.0f} images/s"
    report.add("burst_over_offline", median(ratios), note=note)
    report.add("burst_failures", failures, "requests", f"{tally(single)} in the last round")
