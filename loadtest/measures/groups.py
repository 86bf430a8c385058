"""Pairs per second: of groups in `POST /compare`, and of one request for each order of each pair."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, permutations
from statistics import median
from time import perf_counter
from typing import Any

import httpx

from loadtest import corpus, servers
from loadtest.report import Report, Size
from loadtest.servers import Server
from loadtest.simulate import Shape
from loadtest.workloads import Maker, Spec

IMAGES = 9  # 36 pairs, as in Pref-GRPO
PAIRS = len([*combinations(range(IMAGES), 2)])
AT_ONCE = 16  # requests, of single calls
TOGETHER = 2  # groups
SHAPE = Shape(fixed_ms=20, per_call_ms=6, max_items=32)


def measure(report: Report, size: Size) -> None:
    """Report pairs a second in groups over those in single requests, with the null and the timed model."""
    groups = max(TOGETHER, round(8 * size.share))
    for name, serving in (("null", servers.null()), ("timed", servers.timed(SHAPE))):
        with serving as server:
            ratios, rates = [], []
            for seed in range(size.rounds):
                maker = Maker(Spec("groups", seed=seed, image="rl"), corpus.FOLDER)
                made = [[maker.image("rl") for _ in range(IMAGES)] for _ in range(groups)]
                ours = pairs_s(server, "/compare", [group_of(group) for group in made], TOGETHER, groups)
                theirs = pairs_s(server, "/score", [*singles_of(made)], AT_ONCE, groups)
                ratios.append(ours / theirs)
                rates.append(ours)
        note = f"{median(rates):.0f} pairs/s in groups of {IMAGES}, {name} model; the same judge, 512² JPEG"
        report.add(f"groups_over_singles_{name}", median(ratios), note=note)


def group_of(images: Sequence[str]) -> dict[str, Any]:
    """Return the body of a comparison."""
    return {"prompt": "a red dog", "images": images, "rubric": "preference", "priority": "bulk"}


def singles_of(groups: Sequence[Sequence[str]]) -> Iterator[dict[str, Any]]:
    """Yield a request for each order of each pair, by a rubric that sees two pictures as well."""
    for images in groups:
        for first, second in permutations(images, 2):
            yield {
                "items": [{"prompt": "a red dog", "image": first, "references": [second]}],
                "metrics": ["judge"],
                "options": {"judge": {"rubric": "anchored_likeness"}},
                "priority": "bulk",
            }


def pairs_s(server: Server, path: str, bodies: Sequence[dict[str, Any]], at_once: int, groups: int) -> float:
    """Return the pairs a second of *groups*, which are in these requests.  Raises if one fails."""
    with server.client() as client, ThreadPoolExecutor(at_once) as threads:
        began = perf_counter()
        answers = list(threads.map(lambda body: client.post(path, json=body), bodies))
        seconds = perf_counter() - began
    for answer in answers:
        check(answer)
    return groups * PAIRS / seconds


def check(answer: httpx.Response) -> None:
    """Exit if a pair or a score is missing."""
    content = answer.json()
    if answer.status_code != 200 or content.get("failed") or content.get("partial"):
        raise SystemExit(f"{answer.url}: {answer.status_code} {str(content)[:300]}")
