"""
`python -m loadtest.gate`: `scoregate.load` and the same model called by hand, the demo's CLIP-FlanT5.

By hand is the way of t2v_metrics: for each pair the file is opened, prepared and scored alone, with all
threads.  Pictures and prompts are drawn anew for each side, so no cache has them.  Rounds alternate.

    a lone pair: median seconds of one call, gate over hand (at most 1.15)
    a list: pairs a second of `score_many`, gate over hand (at least 1.0)
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import torch
from PIL.Image import fromarray

import scoregate
from models.core.calls import LikelihoodCall
from models.core.outcomes import Likelihood
from models.families.clip_flant5.model import ClipFlanT5
from models.images.image import Image, lossless

WEIGHTS = Path(__file__).parents[1] / "models" / "demo" / "weights" / "clip_flant5"
SIDE = 512  # pixels of a picture
MOST_LONE, LEAST_LIST = 1.15, 1.0


def image_files(seed: int) -> Iterator[bytes]:
    """Yield PNG files that all differ: coarse noise, which compresses as drawings do."""
    drawn = np.random.default_rng(seed)
    while True:
        coarse = drawn.integers(0, 256, (SIDE // 32, SIDE // 32, 3), np.uint8)
        yield lossless(fromarray(coarse.repeat(32, 0).repeat(32, 1)))


def by_hand(model: ClipFlanT5, threads: int) -> Callable[[bytes, str], float]:
    """Return the function that scores one pair with *model*."""

    def score(image: bytes, prompt: str) -> float:
        torch.set_num_threads(threads)
        call = LikelihoodCall(Image(image), model.info.question.replace("{}", prompt), "Yes")
        [outcome] = model.score([model.prepare(call)])
        assert isinstance(outcome, Likelihood)
        return float(np.exp(outcome.log_p_yes))

    return score


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.gate", description=__doc__)
    parser.add_argument("--lone", type=int, default=60, help="lone pairs of each side")
    parser.add_argument("--list", type=int, default=1000, help="pairs of the list")
    options = parser.parse_args(argv)
    hand = by_hand(ClipFlanT5(WEIGHTS, dtype="float32", device="cpu"), torch.get_num_threads())
    with scoregate.load("demo") as gate:
        lone = alone(hand, lambda image, prompt: gate.score(image, prompt).value, options.lone)
        many = together(hand, gate, options.list)
    print(f"a lone pair: {lone[1] * 1e3:.2f} ms, by hand {lone[0] * 1e3:.2f} ms: {lone[1] / lone[0]:.2f}")
    print(f"a list: {many[1]:.1f} pairs/s, by hand {many[0]:.1f}: {many[1] / many[0]:.2f}")
    return int(lone[1] / lone[0] > MOST_LONE or many[1] / many[0] < LEAST_LIST)


def alone(
    hand: Callable[[bytes, str], float], gate: Callable[[bytes, str], float], count: int
) -> tuple[float, float]:
    """Return the median seconds of a pair, by hand and by the gate, in turns."""
    files = image_files(1)
    times: tuple[list[float], list[float]] = [], []
    for number in range(count + 10):
        for side, score in zip(times, (hand, gate), strict=True):
            image, began = next(files), time.perf_counter()
            score(image, f"a red square {number}")
            side.append(time.perf_counter() - began)
    return median(times[0][10:]), median(times[1][10:])


def together(hand: Callable[[bytes, str], float], gate: scoregate.Client, count: int) -> tuple[float, float]:
    """Return the pairs a second of a list, by hand and by the gate."""
    files = image_files(2)
    pairs = [(next(files), f"a blue circle {number}") for number in range(2 * count)]
    began = time.perf_counter()
    for image, prompt in pairs[:count]:
        hand(image, prompt)
    by_hand_s, began = time.perf_counter() - began, time.perf_counter()
    found = [result.scores["vqascore"] for result in gate.score_many(pairs[count:])]
    return count / by_hand_s, len(found) / (time.perf_counter() - began)


if __name__ == "__main__":
    sys.exit(main())
