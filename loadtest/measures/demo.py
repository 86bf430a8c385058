"""Figures of the demo profile: question LLM calls, consistency of scores, bursts, eight questions."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from random import Random
from statistics import median

import orjson

from loadtest import corpus, servers
from loadtest.report import Report, Size, tally
from loadtest.results import count, throughput
from loadtest.servers import Item, Server, item
from loadtest.workloads import Spec

LLM_CALLS = 'scoregate_question_llm_calls_total{result="ok"}'


def measure(report: Report, size: Size) -> None:
    """Report the figures of the demo profile; all but the first with the last number of threads."""
    with ExitStack() as stack:
        with ExitStack() as looping, ThreadPoolExecutor(1) as thread:
            # The loops start while the services do: each start mostly imports, on one core.
            starting = thread.submit(
                lambda: [looping.enter_context(servers.loop(each)) for each in size.threads]
            )
            through = [stack.enter_context(servers.demo(OMP_NUM_THREADS=threads)) for threads in size.threads]
            eight_questions(report, size, through, starting.result())
        one_prompt(report, through[-1])
        alone_or_together(report, through[-1])
        burst(report, through[-1], size)


def one_prompt(report: Report, server: Server) -> None:
    """Report the question LLM calls for 24 concurrent requests with the same prompt."""
    before = server.sample(LLM_CALLS)
    outcomes = server.run(Spec("one-prompt", metric="dsg"))
    note = f"24 requests at once: {tally(outcomes)}"
    report.add("question_llm_calls", server.sample(LLM_CALLS) - before, "calls", note)


def alone_or_together(report: Report, server: Server) -> None:
    """Report the largest difference between a pair's score alone and among 31 others."""
    random = Random(7)
    texts, images = corpus.prompts(random), corpus.distinct("rl", random)
    items = [item(next(texts), next(images)) for _ in range(32)]
    together = scores(server, items)
    alone = [scores(server, [each])[0] for each in items]
    off = max(abs(one - other) for one, other in zip(alone, together, strict=True))
    report.add("alone_or_together", off, note="largest difference of 32 pairs, float32")


def scores(server: Server, items: list[Item]) -> list[float]:
    with server.client() as client:
        answer = client.post("/score", json={"items": items}).json()
    return [result["scores"]["vqascore"] for result in answer["results"]]


def burst(report: Report, server: Server, size: Size) -> None:
    """Report the rate of 512 concurrent single-image requests over that of requests with 128 images."""
    ratios, failures = [], 0
    scale = min(1.0, 4 * size.scale)  # a quarter of a burst would not test 512 concurrent sockets
    for seed in range(size.rounds):
        single = report.keep("demo profile", "rl-burst", server.run(Spec("rl-burst", seed, scale)))
        whole = report.keep("demo profile", "whole", server.run(Spec("whole", seed, scale)))
        ratios.append(throughput(single) / throughput(whole))
        failures += len(single) - count(single, "ok")
    note = f"{throughput(single):.0f} over {throughput(whole):.0f} images/s"
    report.add("burst_over_offline", median(ratios), note=note)
    report.add("burst_failures", failures, "requests", f"{tally(single)} in the last round")


def eight_questions(
    report: Report, size: Size, through: Sequence[Server], loops: Sequence[Callable[[], float]]
) -> None:
    """
    Report the time of eight questions in a loop over that of the service, each at its best thread count.
    """
    images = corpus.distinct("rl", Random(0))
    body = {"metrics": ["dsg"], "options": {"dsg": {"question_set": corpus.QUESTION_SET}}}
    served: list[list[float]] = [[] for _ in through]
    looped: list[list[float]] = [[] for _ in loops]
    for _ in range(5 * size.rounds):
        for times, server in zip(served, through, strict=True):
            items = [item("a picture", next(images))]
            times.append(server.post_s(orjson.dumps({"items": items, **body})))
        for times, answer_s in zip(looped, loops, strict=True):
            times.append(answer_s())
    best = [min(median(times) for times in ways) for ways in (looped, served)]
    note = f"{1000 * best[1]:.0f} ms through the service, {1000 * best[0]:.0f} ms in a loop"
    report.add("eight_questions_over_loop", best[0] / best[1], note=note)
