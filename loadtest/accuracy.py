"""
`python -m loadtest.accuracy`: accuracy and speed of the demo service, measured through its API.

Accuracy on held-out scenes, start time, latency, speed-up of batched pairs, idle memory.
Prints each figure with its target; exits 1 if one is missed.  Absolute times depend on the machine.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from operator import eq
from statistics import fmean, median
from time import monotonic

import httpx
import orjson

from demo.training.evaluation import Case, cases
from demo.training.language import metadata_of
from loadtest import servers
from loadtest.servers import TIMEOUT_MS, Item, Server, item, memory_mb, results

ITEMS = 64  # a request
ROUNDS = 5
ACCURACY = {"presence": 99, "binding": 99, "relation": 99, "negation": 99, "count": 97}
CLOSE = 0.15  # the gap between things that nearly touch, in radii
QUESTION_METRICS = {"dsg": 97, "tifa": 95, "soft_tifa": 95, "vq2": 95, "gecko": 95, "skills": 95}
EXACTLY_ONE = ("skills",)  # metrics that take "a circle" to mean exactly one
QUESTION_KINDS = ("presence", "binding", "relation")
VERDICTS = {"presence": 94, "binding": 92, "relation": 90, "count": 90}


@dataclass(slots=True)
class Report:
    """Prints figures and collects missed targets."""

    missed: list[str] = field(default_factory=list)

    def say(self, name: str, value: float, unit: str, least: float = -inf, most: float = inf) -> None:
        """Print one figure with its target, if it has one."""
        met = least <= value <= most
        target = f"≥ {least:g}" if least > -inf else f"≤ {most:g}" if most < inf else ""
        mark = ("met" if met else "MISSED") if target else ""
        print(f"{name:<52} {value:>8.1f} {unit:<3} {target:>8} {mark}", flush=True)
        if not met:
            self.missed.append(name)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500, help="held-out pictures per kind")
    parser.add_argument(
        "--dsg-cases", type=int, default=100, help="how many of them to score by question metrics, too"
    )
    arguments = parser.parse_args(argv)
    report = Report()
    began = monotonic()
    with servers.demo() as server, server.client() as client:
        report.say("ready after", monotonic() - began, "s", most=15)
        report.say("memory when idle", memory_mb(server.pid), "MB", most=2000)
        speed(server, report)
        accuracy(client, report, arguments.cases, arguments.dsg_cases)
        second_opinion(client, report, arguments.cases)
    print("all targets met" if not report.missed else f"missed: {', '.join(report.missed)}")
    return 1 if report.missed else 0


def speed(server: Server, report: Report) -> None:
    """Report the speed of single pairs and of 64 together, in five interleaved rounds with new pictures."""
    alone, together, apart = [], [], []
    for turn in range(ROUNDS + 1):
        held = list(cases("binding", ITEMS, seed=f"speed-{turn}"))
        items = [as_item(case, case.right) for case in held]
        times = [server.post_s(request_of([each])) for each in items]
        whole = server.post_s(request_of(items))
        if turn:  # the first round warms up
            alone += times
            apart.append(sum(times))
            together.append(whole)
    report.say("one VQAScore pair, median", 1000 * median(alone), "ms", most=150)
    gains = [one / many for one, many in zip(apart, together, strict=True)]
    report.say(f"{ITEMS} pairs together against one by one, median", median(gains), "x", least=3)


def request_of(items: Sequence[Item]) -> bytes:
    """Return a request for VQAScore."""
    return orjson.dumps({"items": items, "metrics": ["vqascore"], "timeout_ms": TIMEOUT_MS})


def accuracy(client: httpx.Client, report: Report, count: int, dsg_count: int) -> None:
    """
    Report how often the right prompt scores above the wrong one for the same held-out picture, by metric.
    """
    print(f"how often the right prompt scores above the wrong one, {count} held-out pictures per kind:")
    for kind, least in ACCURACY.items():
        held = list(cases(kind, count))
        won = {name: wins(client, held, name) for name in ("vqascore", "clipscore")}
        report.say(f"  VQAScore, {kind}", 100 * won["vqascore"], "%", least=least)
        report.say(f"  CLIPScore, {kind}", 100 * won["clipscore"], "%")
    close = list(cases("count", 4 * count, gap=CLOSE))  # 500 cases would be too few: some seeds are 1 % off
    report.say(f"  VQAScore, count, {CLOSE:.0%} apart", 100 * wins(client, close, "vqascore"), "%", least=97)
    for metric, least in QUESTION_METRICS.items():
        single = metric in EXACTLY_ONE
        held_by_kind = [list(cases(kind, dsg_count, single=single)) for kind in QUESTION_KINDS]
        ahead = [wins(client, held, metric) for held in held_by_kind]
        for kind, share in zip(QUESTION_KINDS, ahead, strict=True):
            report.say(f"  {metric}, {kind} ({dsg_count} pictures)", 100 * share, "%")
        report.say(f"  {metric} over {', '.join(QUESTION_KINDS)}", 100 * fmean(ahead), "%", least=least)


def second_opinion(client: httpx.Client, report: Report, count: int) -> None:
    """Report how often the detector's verdict is right, and how often it agrees with VQAScore on counts."""
    print(f"how often GenEval's verdict about a prompt is right, of {count} held-out pictures per kind:")
    for kind, least in VERDICTS.items():
        held = [case for case in cases(kind, count) if all(map(metadata_of, case.statements))]
        verdicts = list(scored(client, described(held), "geneval"))
        right = verdicts[::2].count(1) + verdicts[1::2].count(0)
        report.say(f"  geneval, {kind} ({len(held)})", 100 * right / len(verdicts), "%", least=least)
        if kind == "count":
            other = preferred(list(scored(client, described(held), "vqascore")))
            same = sum(map(eq, preferred(verdicts), other)) / len(held)
            report.say("  prefers the prompt that VQAScore prefers, count", 100 * same, "%")


def preferred(scores: Sequence[float]) -> list[int]:
    """Compare each pair of scores: 1 if the first is larger, -1 if the second is, 0 for a tie."""
    return [(one > other) - (one < other) for one, other in zip(scores[::2], scores[1::2], strict=True)]


def described(held: Sequence[Case]) -> list[Item]:
    """Return two items for each case, with its right and its wrong prompt, and their GenEval metadata."""
    return [
        as_item(case, statement.text, options={"geneval": metadata_of(statement)})
        for case in held
        for statement in case.statements
    ]


def wins(client: httpx.Client, held: Sequence[Case], metric: str) -> float:
    """Return the share of cases whose right prompt scores strictly higher; a missing score loses."""
    items = [as_item(case, text) for case in held for text in (case.right, case.wrong)]
    scores = list(scored(client, items, metric))
    won = sum(right > wrong for right, wrong in zip(scores[::2], scores[1::2], strict=True))
    return won / len(held)


def scored(client: httpx.Client, items: Sequence[Item], metric: str) -> Iterator[float]:
    """Yield the scores of *items*; an item with the error `unanswered` has the score NaN."""
    for result in results(client, items, metric, ITEMS):
        if metric not in result["scores"] and result["errors"][metric]["code"] != "unanswered":
            raise SystemExit(f"{metric}: {result['errors']}")
        yield result["scores"].get(metric, nan)


def as_item(case: Case, prompt: str, **more: object) -> Item:
    """Return a case as an item of a request."""
    return item(prompt, case.image.encoded, **more)


if __name__ == "__main__":
    sys.exit(main())
