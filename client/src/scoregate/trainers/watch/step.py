"""The watched pictures of a step: their choice, and their figures."""

from __future__ import annotations

import io
import random
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from math import exp
from statistics import fmean
from typing import Any

from scoregate.errors import NoTextError
from scoregate.results import Result
from scoregate.trainers.outcomes import Outcome
from scoregate.trainers.sending import left_out

MOST = 8192  # the newest values of a step
PROMPTS, GROUP = 256, 32  # most prompts whose pictures are compared, and most pictures of each
SIDE = 8  # pixels of a thumbnail
ALIKE = 2.0  # of 255: the mean difference of two thumbnails of duplicates
ENDS = 0.001  # of a range: where scores are saturated
LOG_ODDS = {"output": "logit"}

newest = partial(deque[Any], maxlen=MOST)


@dataclass
class Step:
    """
    A step of a run: its rewards, and the scores of its watched pictures.

    Attributes:
        waiting: pictures that are in the queue or under way.
        rewards: of all pictures that have one.
        scores: by watched metric.
        no_text: for each watched picture, whether the reward or the watch had this error.
        failed: for each watched picture, whether the watch had another error.
        saturated: for each score of the reward of a watched picture, whether it is at an end of its range.
        thumbnails: of the pictures of some prompts.
        skipped: the number of pictures for which there was no room.
    """

    number: int
    waiting: int = 0
    rewards: deque[float] = field(default_factory=newest)
    scores: dict[str, deque[float]] = field(default_factory=dict)
    no_text: deque[bool] = field(default_factory=newest)
    failed: deque[bool] = field(default_factory=newest)
    saturated: deque[bool] = field(default_factory=newest)
    thumbnails: dict[str, list[bytes]] = field(default_factory=dict)
    skipped: int = 0

    def add(self, outcome: Outcome, result: Result) -> None:
        """Add the scores of a watched picture."""
        errors = [*result.errors.values(), outcome, *left_out(outcome).values()]
        self.no_text.append(any(isinstance(each, NoTextError) for each in errors))
        self.failed.append(any(not isinstance(each, NoTextError) for each in result.errors.values()))
        for metric, score in result.scores.items():
            self.scores.setdefault(metric, newest()).append(score)

    def compare(self, prompt: str, thumbnail: bytes) -> None:
        """Add a picture that is compared with the others of its prompt."""
        if prompt in self.thumbnails or len(self.thumbnails) < PROMPTS:
            group = self.thumbnails.setdefault(prompt, [])
            group += [thumbnail] * (len(group) < GROUP)

    def figures(self) -> dict[str, float]:
        """Return the figures of the step; one without any picture is missing."""
        values: dict[str, Collection[float]] = {
            "reward": self.rewards,
            **{f"{metric}/mean": scores for metric, scores in self.scores.items()},
            "no_text": self.no_text,
            "failed": self.failed,
            "saturated": self.saturated,
            "duplicates": [like for group in self.thumbnails.values() for like in duplicates(group)],
        }
        return {name: fmean(each) for name, each in values.items() if each} | {"skipped": float(self.skipped)}


def sample(share: float, seed: int) -> Iterator[int]:
    """Yield the numbers of the pictures of a sample: a random one of each 1 / *share*, in order."""
    dice = random.Random(seed)
    last = -1
    for stratum in count():
        last = max(last + 1, int((stratum + dice.random()) / share))  # two strata may share a picture
        yield last


def compared(prompt: str, step: int, share: float, seed: int) -> bool:
    """Return True for a share of the prompts of a step, the same ones in all processes."""
    return random.Random(f"{seed}/{step}/{prompt}").random() < share


def thumbnail(file: bytes) -> bytes:
    """Return the colours of a picture in few pixels.  Raises `ImportError` without Pillow, or its errors."""
    import PIL.Image

    with PIL.Image.open(io.BytesIO(file)) as image:
        return image.convert("RGB").resize((SIDE, SIDE), PIL.Image.Resampling.BOX).tobytes()


def duplicates(group: Sequence[bytes]) -> list[bool]:
    """Return for each thumbnail of a group whether another one is alike; nothing for a single one."""
    if len(group) < 2:
        return []
    return [any(is_alike(one, other) for other in group if other is not one) for one in group]


def is_alike(one: bytes, other: bytes) -> bool:
    """Return True if two thumbnails differ by little."""
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) <= ALIKE * len(one)


def saturated(score: float, entry: Mapping[str, Any], options: Mapping[str, Any]) -> bool | None:
    """
    Return True for a score at an end of its range; None if the range is unknown or has an open end.

    Args:
        entry: the metric's in `GET /models`, whose range is that of default options.
        options: of the metric; others than log-odds may have another range.
    """
    low, high = entry.get("range") or (None, None)
    log_odds = dict(options) == LOG_ODDS
    if low is None or high is None or (options and not log_odds):
        return None
    if log_odds:
        score = 1 / (1 + exp(-score)) if score > -700 else 0.0
    slack = ENDS * (high - low)
    return not low + slack < score < high - slack
