"""
The watch of a reward: other metrics score a sample of its pictures, for the log and a test for hacking.

It works in the background of the reward, which it neither delays nor fails nor changes.

* `scoregate/watch/reward`: the mean of the rewards of the watched step.
* `scoregate/watch/METRIC/mean`: the mean of each metric of the watch.
* `scoregate/watch/METRIC/correlation`: with the reward, of the newest 500 watched pictures.
* `scoregate/watch/METRIC/divergence`: how far the metric falls, as a share of the threshold; 0 while the
  reward does not rise, and 1 is the alarm.
* `scoregate/watch/no_text`: the share of watched pictures whose prompt quotes no text, so that `ocr` has no
  score.
* `scoregate/watch/saturated`: the share of the reward's scores within 0.1 % of an end of their range, where
  nothing can be learned.
* `scoregate/watch/duplicates`: the share of pictures that resemble another one of their prompt (thumbnails
  of 8 x 8 pixels that differ by less than 1 %; it needs Pillow), for a sample of the prompts.
* `scoregate/watch/failed`, `scoregate/watch/skipped`: the share of the sample that a metric could not score,
  and the number of pictures for which the queue had no room.
"""

from __future__ import annotations

import asyncio
import io
import os
import random
import threading
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from logging import getLogger
from math import exp
from statistics import StatisticsError, correlation, fmean
from typing import Any

from scoregate.aio import AsyncClient
from scoregate.client import Portal
from scoregate.errors import NoTextError, ScoregateError, UnknownMetricError, reason_of
from scoregate.images import Frames
from scoregate.items import Item, names_of
from scoregate.results import Result, lower_is_better, understood
from scoregate.text import hinted_keywords
from scoregate.trainers.divergence import STEPS_OF_A_RUN, Divergence
from scoregate.trainers.figures import PREFIX, log
from scoregate.trainers.images import size_of
from scoregate.trainers.outcomes import Scored, ScoredOrError
from scoregate.trainers.sending import Sender, left_out


@hinted_keywords
@dataclass(frozen=True)
class Watch:
    """
    What watches a reward.

    Attributes:
        metrics: that score the sample.
        share: of the pictures, and of the prompts whose pictures are compared with each other.
        seed: of the sample, which is the same for the same order of pictures.
        alarms: the share of clean runs of 1,000 steps that have a false alarm, at most, if the noise of step
            means is stationary.  It is divided by the number of metrics.
        every: pictures of a step.  By default a step ends at `Reward.statistics`.  With *every* it ends by
            itself, and its figures are a line of the logger `scoregate.watch`.
        options: by metric.
        timeout_s: of the scores of one picture.

    Raises:
        ValueError: *metrics* are none or named twice, a number is outside its range, or *alarms* is too low
            for so many metrics.
    """

    metrics: Sequence[str] | str
    share: float = 0.1
    seed: int = 0
    alarms: float = 0.05
    every: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(f"a watch has at least one metric, and none twice: {', '.join(self.names)}")
        if not 0 < self.share <= 1:
            raise ValueError(f"the share of a watch is above 0 and at most 1, not {self.share}")
        if self.every is not None and self.every < 1:
            raise ValueError(f"a step has at least one picture, not {self.every}")
        self.tests()

    @classmethod
    def of(cls, given: Watch | Mapping[str, Any] | Sequence[str] | str) -> Watch:
        """Return a watch; *given* may also be its metrics, or its attributes by name."""
        if isinstance(given, Watch):
            return given
        return cls(**given) if isinstance(given, Mapping) else cls(tuple(names_of(given)))

    @property
    def names(self) -> list[str]:
        """The metrics."""
        return names_of(self.metrics)

    def tests(self) -> dict[str, Divergence]:
        """Return a new test for each metric."""
        return {metric: Divergence(self.alarms / len(self.names)) for metric in self.names}


# --- the watched pictures of a step: their choice, and their figures ---


MAX_STEP_VALUES = 8192  # the newest values of a step
PROMPTS, GROUP = 256, 32  # most prompts whose pictures are compared, and most pictures of each
THUMBNAIL_PIXELS = 8  # pixels of a thumbnail
MAX_DUPLICATE_DIFFERENCE = 2.0  # mean difference of two thumbnails of duplicates, out of 255
SATURATED_SHARE = 0.001  # scores in this share of a range, at its ends, are saturated
LOG_ODDS_OPTIONS = {"output": "logit"}

newest = partial(deque[Any], maxlen=MAX_STEP_VALUES)


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

    def add(self, outcome: ScoredOrError, result: Result) -> None:
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
        return (
            image.convert("RGB")
            .resize((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS), PIL.Image.Resampling.BOX)
            .tobytes()
        )


def duplicates(group: Sequence[bytes]) -> list[bool]:
    """Return for each thumbnail of a group whether another one is alike; nothing for a single one."""
    if len(group) < 2:
        return []
    return [any(is_alike(one, other) for other in group if other is not one) for one in group]


def is_alike(one: bytes, other: bytes) -> bool:
    """Return True if two thumbnails differ by little."""
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) <= MAX_DUPLICATE_DIFFERENCE * len(one)


def saturated(score: float, entry: Mapping[str, Any], options: Mapping[str, Any]) -> bool | None:
    """
    Return True for a score at an end of its range; None if the range is unknown or has an open end.

    Args:
        entry: the metric's in `GET /models`, whose range is that of default options.
        options: of the metric; others than log-odds may have another range.
    """
    low, high = entry.get("range") or (None, None)
    log_odds = dict(options) == LOG_ODDS_OPTIONS
    if low is None or high is None or (options and not log_odds):
        return None
    if log_odds:
        score = 1 / (1 + exp(-score)) if score > -700 else 0.0
    slack = SATURATED_SHARE * (high - low)
    return not low + slack < score < high - slack


# --- the work in the background ---


LOGGER = getLogger("scoregate.watch")
NAME = f"{PREFIX}watch/"
IMAGES_AT_ONCE = 4  # pictures under way
MAX_WAITING = 256  # pictures in the queue
MAX_WAITING_BYTES = 256 * 2**20
MAX_CORRELATED_PAIRS = 500  # the newest watched pictures, whose rewards and scores are correlated


@dataclass(frozen=True)
class Watched:
    """
    A picture of the sample.

    Attributes:
        scored: whether by the metrics of the watch.
        compared: whether with the other pictures of its prompt.
    """

    step: Step
    item: Item
    outcome: ScoredOrError
    scored: bool
    compared: bool


class Watching:
    """
    The watch of a reward in one process.

    Pictures wait in a queue of limited size for a few tasks, which end when it is empty.  A step that is over
    is judged when none of its pictures waits.

    Args:
        most, most_bytes: pictures in the queue, and their bytes.
    """

    def __init__(
        self,
        watch: Watch,
        warned: Counter[str],
        most: int = MAX_WAITING,
        most_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._watch, self._tests, self._warned = watch, watch.tests(), warned
        self._lock = threading.RLock()
        self._number, self._sample = count(), sample(watch.share, watch.seed)
        self._next = next(self._sample)
        self._steps: deque[Step] = deque([Step(0)])
        self._images = 0  # pictures of the newest step
        self._queue: deque[Watched] = deque()
        self._bytes = 0
        self._most, self._most_bytes = most, most_bytes
        self._workers: dict[int, Future[None]] = {}
        self._worker = count()
        self._entries: Mapping[str, Mapping[str, Any]] = {}
        self._pairs: dict[str, deque[tuple[float, float]]] = {}
        self._judged: dict[str, float] = {}
        self._logged: set[str] = set()

    def observe(
        self,
        items: Sequence[Item | ScoregateError],
        outcomes: Sequence[ScoredOrError],
        sender: Sender,
        portal: Portal,
    ) -> None:
        """Put a sample of the pictures of a call into the queue."""
        with self._lock:
            step = self._steps[-1]
            step.rewards.extend(float(one) for one in outcomes if isinstance(one, Scored))
            for item, outcome in zip(items, outcomes, strict=True):
                self._offer(step, item, outcome)
            self._images += len(items)
            if self._watch.every and self._images >= self._watch.every:
                self._end()
            for _ in range(min(IMAGES_AT_ONCE - len(self._workers), len(self._queue))):
                worker = next(self._worker)
                self._workers[worker] = portal.submit(self._work(worker, sender))
                self._workers[worker].add_done_callback(partial(self._stopped, worker))

    def figures(self) -> dict[str, float]:
        """
        Return the figures of the steps that were judged since the last such call; of several, the newest.

        Without `every` this ends the present step.
        """
        with self._lock:
            if not self._watch.every:
                self._end()
            judged, self._judged = self._judged, {}
        return judged

    def close(self) -> None:
        """Stop all work, and drop what waits."""
        with self._lock:
            self._drop()
            for work in list(self._workers.values()):
                work.cancel()

    def _offer(self, step: Step, item: Item | ScoregateError, outcome: ScoredOrError) -> None:
        """Put a picture into the queue if it is in the sample, or note that there is no room."""
        scored = next(self._number) == self._next
        if scored:
            self._next = next(self._sample)
        if not isinstance(item, Item):
            return
        alike = compared(str(item.prompt), step.number, self._watch.share, self._watch.seed)
        if not (scored or alike):
            return
        size = size_of(item)
        if len(self._queue) == self._most or self._bytes + size > self._most_bytes:
            step.skipped += 1
            return
        self._queue.append(Watched(step, item, outcome, scored, alike))
        self._bytes += size
        step.waiting += 1

    def _take(self, worker: int) -> Watched | None:
        """Return the next picture; without one, the worker is none any more."""
        with self._lock:
            if not self._queue:
                self._workers.pop(worker, None)
                return None
            self._bytes -= size_of(self._queue[0].item)
            return self._queue.popleft()

    def _drop(self) -> None:
        """Drop the queue."""
        for each in self._queue:
            each.step.waiting -= 1
            each.step.skipped += 1
        self._queue.clear()
        self._bytes = 0

    def _stopped(self, worker: int, work: Future[None]) -> None:
        with self._lock:
            self._workers.pop(worker, None)
            if work.cancelled():  # the connections are closed
                self._drop()
            elif fault := work.exception():
                LOGGER.error("the watch has a fault", exc_info=fault)

    async def _work(self, worker: int, sender: Sender) -> None:
        """Watch one picture after another until the queue is empty."""
        while each := self._take(worker):
            try:
                await self._watch_one(each, sender)
            finally:
                with self._lock:
                    each.step.waiting -= 1
                    self._judge()

    async def _watch_one(self, each: Watched, sender: Sender) -> None:
        if each.compared:
            try:
                shown = await asyncio.to_thread(thumbnail, first_of(each.item.image))
                each.step.compare(str(each.item.prompt), shown)
            except Exception as error:
                self._log_once("a picture cannot be compared", error)
        if each.scored:
            result = await self._result(each.item, sender)
            with self._lock:
                self._record(each, result, sender.options)

    async def _result(self, item: Item, sender: Sender) -> Result:
        """Return the scores of an item, or errors in their place."""
        names = self._watch.names
        try:
            result = await self._scored(item, sender.client)
        except Exception as exc:
            failed = exc if isinstance(exc, ScoregateError) else ScoregateError(reason_of(exc))
            result = Result.failed(0, None, names, failed)
        for metric, error in result.errors.items():
            if not isinstance(error, NoTextError):
                self._log_once(f"{metric} has no score", error)
        return result

    async def _scored(self, item: Item, client: AsyncClient) -> Result:
        """Return the scores of an item by the metrics that the service has, and errors for others."""
        if not self._entries.keys() >= {*self._watch.names}:
            models = await client.models()
            self._entries = understood(lambda: {name: dict(of) for name, of in models["metrics"].items()})
        unknown = [name for name in self._watch.names if name not in self._entries]
        errors = {name: UnknownMetricError(f"the service has no metric {name!r}") for name in unknown}
        served = [name for name in self._watch.names if name not in errors]
        if not served:
            raise errors[unknown[0]]
        options = {name: each for name, each in self._watch.options.items() if name in served}
        [result] = await client.score_items(
            [item], served, options=options or None, priority="bulk", timeout_s=self._watch.timeout_s
        )
        return replace(result, errors={**result.errors, **errors})

    def _log_once(self, what: str, error: Exception) -> None:
        """Log the first error of its kind."""
        kind = f"{what}: {getattr(error, 'code', type(error).__name__)}"
        if kind not in self._logged:
            self._logged.add(kind)
            LOGGER.warning("the watch goes on without it: %s: %s", kind, reason_of(error))

    def _record(self, each: Watched, result: Result, options: Mapping[str, Mapping[str, Any]]) -> None:
        each.step.add(each.outcome, result)
        if not isinstance(each.outcome, Scored):
            return
        for metric, score in each.outcome.parts.items() if not each.outcome.of_group else ():
            ends = saturated(score, self._entries.get(metric, {}), options.get(metric, {}))
            each.step.saturated.extend([] if ends is None else [ends])
        for metric, score in result.scores.items():
            self._pairs.setdefault(metric, deque(maxlen=MAX_CORRELATED_PAIRS)).append(
                (float(each.outcome), score)
            )

    def _end(self) -> None:
        """End the present step if it has pictures."""
        if self._images:
            self._steps.append(Step(self._steps[-1].number + 1))
            self._images = 0
            self._judge()

    def _judge(self) -> None:
        """Judge the steps that are over, in order."""
        while len(self._steps) > 1 and not self._steps[0].waiting:
            step = self._steps.popleft()
            figures = step.figures()
            for metric, pairs in self._pairs.items():
                if (value := correlated(pairs)) is not None:
                    figures[f"{metric}/correlation"] = value
            for metric, scores in step.scores.items():
                if step.rewards:
                    figures[f"{metric}/divergence"] = self._tested(metric, fmean(step.rewards), fmean(scores))
            named = {NAME + name: value for name, value in figures.items()}
            self._judged |= named
            if self._watch.every:
                log(named, step.number, LOGGER)

    def _tested(self, metric: str, reward: float, watched: float) -> float:
        """Return how close the test of *metric* is to its alarm, and warn at the first one."""
        worse = lower_is_better(self._entries.get(metric, {}))
        closeness = self._tests[metric].add(reward, -watched if worse else watched)
        kind = f"watch: {metric}"
        if closeness >= 1 and not self._warned[kind]:
            self._warned[kind] += 1
            LOGGER.warning(
                "the reward rises while %s gets worse: it may be hacked (at most %.3g %% of clean runs of %d"
                " steps have such an alarm, if their noise is stationary)",
                metric,
                100 * self._watch.alarms,
                STEPS_OF_A_RUN,
            )
        return closeness


class Watcher:
    """The watch of a reward, in each process that uses it."""

    def __init__(self, watch: Watch, warned: Counter[str]) -> None:
        self._watch, self._warned = watch, warned
        self._by_process: dict[int, Watching] = {}

    def observe(
        self,
        items: Sequence[Item | ScoregateError],
        outcomes: Sequence[ScoredOrError],
        sender: Sender,
        portal: Portal,
    ) -> None:
        """Watch a sample of the pictures of a call; an exception is logged and not raised."""
        try:
            self._here().observe(items, outcomes, sender, portal)
        except Exception:
            LOGGER.exception("the watch has a fault")

    def figures(self) -> dict[str, float]:
        """Return the new figures; an exception is logged and not raised."""
        try:
            return self._here().figures()
        except Exception:
            LOGGER.exception("the watch has a fault")
            return {}

    def close(self) -> None:
        """Stop the work in this process."""
        self._here().close()

    def _here(self) -> Watching:
        made = self._by_process.get(os.getpid())
        return made or self._by_process.setdefault(os.getpid(), Watching(self._watch, self._warned))


def correlated(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the correlation of two scores; None while there is no variance."""
    try:
        return correlation(*zip(*pairs, strict=True))
    except (StatisticsError, TypeError):
        return None


def first_of(image: Any) -> Any:
    """Return a picture, or the first frame of several."""
    return image.frames[0] if isinstance(image, Frames) else image
