"""
`make soak`: callers who leave, 10,000 of them, then ten minutes of everything at once.

Both run against the faulty double.  Ends with status 1 where something is left behind, where an answer
is not the right one, or where memory grows; memory over time goes to build/soak.csv and build/soak.png.
"""

import argparse
import asyncio
import csv
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np

from demo.process import progress, url
from tests.support.callers import METRICS, PICTURES, PROMPTS, draw, leave, leave_often
from tests.support.double import LEFT_BEHIND, Double, faulty

MB_A_MINUTE = 2.0  # how much memory may grow, after the warm-up
WARM_UP = 0.3  # of the time: pools, arenas and caches fill
WORKERS = 12
MARGIN_MB = 10  # in the picture: noise should look like noise
STEP = 500  # callers who leave between two lines of progress
SETTINGS = {"SCOREGATE_CACHE__SCORES": "memory", "SCOREGATE_CACHE__SCORES_MB": "1"}

BAD_BODIES: list[tuple[int, Any]] = [
    (400, b'{"items": [{'),
    (422, b'{"items": []}'),
    (422, b'{"items": [{"prompt": "a", "image": "AAAA"}], "metrics": ["none"]}'),
    (422, b'{"items": [{"prompt": "a", "image": {"part": "absent"}}]}'),
    (422, b'{"items": [{"prompt": "a", "image": "AAAA"}], "unknown": 1}'),
]
BAD_IMAGES = {
    "not base64!": "not_base64",
    "AAAA": "image_undecodable",
    PICTURES[3][:4000]: "image_undecodable",
}


class Wrong(Exception):
    """The service did what it must not; the message says what."""


class Soak:
    """Workers who send what the dice say, and check what comes back."""

    def __init__(self, double: Double, expected: dict[tuple[str, str, str], float]) -> None:
        self.double, self.expected = double, expected
        self.seen: Counter[str] = Counter()

    async def work(self, until: float, seed: str) -> None:
        """Send one request after the other."""
        dice = Random(seed)
        acts = (self.score, self.score, self.score, self.leave, self.bad_body, self.bad_image, self.look)
        async with httpx.AsyncClient(base_url=url(self.double.port), timeout=60, trust_env=False) as client:
            while time.monotonic() < until:
                await dice.choice(acts)(client, dice)

    async def score(self, client: httpx.AsyncClient, dice: Random) -> None:
        """A good request, maybe with calls that fail: scores are right, errors are those asked for."""
        body = draw(dice, "large", "poisoned")
        answer = await client.post("/score", json=body)
        self.expect(200, answer)
        for item, result in zip(body["items"], answer.json()["results"], strict=True):
            for metric in body["metrics"]:
                error = result.get("errors", {}).get(metric, {}).get("code")
                if error:
                    self.require("poisoned" in item["prompt"], f"{metric} of {item['prompt']!r}: {error}")
                    self.seen["poisoned"] += 1
                    continue
                right = self.expected.get((metric, item["prompt"], item["image"]))
                score = result["scores"][metric]
                self.require(right in (None, score), f"{metric} of {item['prompt']!r}: {score}, not {right}")
                self.seen["checked" if right is not None else "scored"] += 1

    async def leave(self, client: httpx.AsyncClient, dice: Random) -> None:
        """Somebody hangs up."""
        await leave(self.double.port, dice, "large", "poisoned")
        self.seen["left"] += 1

    async def bad_body(self, client: httpx.AsyncClient, dice: Random) -> None:
        """No request at all."""
        status, body = dice.choice(BAD_BODIES)
        self.expect(
            status, await client.post("/score", content=body, headers={"Content-Type": "application/json"})
        )

    async def bad_image(self, client: httpx.AsyncClient, dice: Random) -> None:
        """A picture that is none, beside one that is."""
        image, code = dice.choice(list(BAD_IMAGES.items()))
        items = [{"prompt": PROMPTS[0], "image": image}, {"prompt": PROMPTS[0], "image": PICTURES[0]}]
        answer = await client.post("/score", json={"items": items, "metrics": ["vqascore"]})
        self.expect(200, answer)
        bad, good = answer.json()["results"]
        self.require(bad["errors"]["vqascore"]["code"] == code, f"{code} became {bad}")
        self.require("vqascore" in good["scores"], f"beside a bad picture: {good}")

    async def look(self, client: httpx.AsyncClient, dice: Random) -> None:
        """What monitoring asks."""
        self.expect(200, await client.get(dice.choice(("/livez", "/readyz", "/models", "/metrics"))))

    def expect(self, status: int, answer: httpx.Response) -> None:
        """Count an answer; its status must be that."""
        self.seen[f"status {status}"] += 1
        self.require(answer.status_code == status, f"{answer.status_code}, not {status}: {answer.text[:300]}")

    def require(self, true: bool, otherwise: str) -> None:
        """Raises `Wrong`."""
        if not true:
            raise Wrong(otherwise)


async def expected_scores(double: Double) -> dict[tuple[str, str, str], float]:
    """Every metric of every prompt with every picture, each asked alone."""
    scores = {}
    async with httpx.AsyncClient(base_url=url(double.port), timeout=60, trust_env=False) as client:
        for metric in {name for names in METRICS for name in names}:
            for prompt in PROMPTS:
                for image in PICTURES:
                    body = {"items": [{"prompt": prompt, "image": image}], "metrics": [metric]}
                    [result] = (await client.post("/score", json=body)).json()["results"]
                    scores[metric, prompt, image] = result["scores"][metric]
    return scores


async def watch(soak: Soak, minutes: float) -> list[tuple[float, float]]:
    """Run the workers; the process' resident memory each second, as (seconds, MB).  Raises `Wrong`."""
    began, memory = time.monotonic(), []
    end = began + 60 * minutes
    workers = {asyncio.create_task(soak.work(end, f"soak {number}")) for number in range(WORKERS)}
    while workers:
        done, workers = await asyncio.wait(workers, timeout=1)
        for worker in done:
            worker.result()
        memory.append((time.monotonic() - began, resident_mb(soak.double)))
        if len(memory) % 10 == 0:
            at, now = memory[-1]
            progress(f"{at:.0f} s of {60 * minutes:.0f}: {now:.1f} MB, {soak.seen.total()} outcomes\n")
    return memory


def resident_mb(double: Double) -> float:
    """Resident memory of the double's process."""
    told = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(double.process.pid)], capture_output=True, check=True
    )
    return int(told.stdout) / 1024


def growth(memory: list[tuple[float, float]]) -> float:
    """MB a minute after the warm-up, by least squares."""
    seconds, mb = np.array(memory[int(WARM_UP * len(memory)) :]).T
    return 60 * float(np.polyfit(seconds, mb, 1)[0])


def write(memory: list[tuple[float, float]], slope: float, directory: Path) -> None:
    """The samples as CSV, and a picture of them."""
    directory.mkdir(exist_ok=True)
    with (directory / "soak.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("seconds", "resident_mb"), *memory])
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4))
    axes.plot(*zip(*memory, strict=True))
    axes.axvline(memory[int(WARM_UP * len(memory))][0], linestyle=":", color="grey")
    least, most = min(mb for _, mb in memory), max(mb for _, mb in memory)
    axes.set(xlabel="seconds", ylabel="resident, MB", ylim=(least - MARGIN_MB, most + MARGIN_MB))
    axes.set(title=f"Memory of the service: {slope:+.2f} MB a minute after the warm-up")
    figure.savefig(directory / "soak.png", dpi=100)


def at_rest_again(double: Double, before: dict[str, int], seconds: float = 30) -> None:
    """Raises `Wrong` where, after a clean request, something is still left behind."""
    answer = double.score(PROMPTS[0])
    if answer.status_code != 200:
        raise Wrong(f"a clean request: {answer.text[:300]}")
    deadline = time.monotonic() + seconds
    while (after := double.at_rest()) != before:
        if time.monotonic() > deadline:
            raise Wrong(f"left behind: {after}, before: {before}")
    progress(f"nothing is left behind: {after}\n")


def leavers(double: Double, times: int) -> None:
    """The callers who leave, some hundreds at a time."""
    before = double.at_rest()
    for done in range(0, times, STEP):
        asyncio.run(leave_often(double.port, min(STEP, times - done), done))
        now = {name: double.counts()[name] for name in LEFT_BEHIND}
        progress(f"{min(done + STEP, times)} of {times} have left: {now}\n")
    at_rest_again(double, before)


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--leavers", type=int, default=10_000, help="callers who leave")
    parser.add_argument("--minutes", type=float, default=10, help="of everything at once")
    parser.add_argument("--to", type=Path, default=Path("build"), help="directory of the CSV and the PNG")
    wanted = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as directory, faulty(Path(directory), **SETTINGS) as double:
            leavers(double, wanted.leavers)
            before = double.at_rest()
            soak = Soak(double, asyncio.run(expected_scores(double)))
            memory = asyncio.run(watch(soak, wanted.minutes))
            at_rest_again(double, before)
    except Wrong as exc:
        print(f"soak: {exc}", file=sys.stderr)
        return 1
    slope = growth(memory)
    write(memory, slope, wanted.to)
    print(dict(soak.seen))
    print(f"memory: {slope:+.2f} MB a minute, at most {MB_A_MINUTE}; see {wanted.to}/soak.png")
    return 0 if slope <= MB_A_MINUTE else 1


if __name__ == "__main__":
    sys.exit(main())
