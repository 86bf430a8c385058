"""
Scoring for all dialects: pictures with prompts go to the engine in the bulk lane, and wait there.

A refusal may end a trainer.  So requests wait for room in full lanes, and what has a temporary error is
scored again, until the deadline.
"""

import asyncio
import logging
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from starlette.requests import Request

from service.core.concurrency.tasks import side_by_side, while_connected
from service.core.errors import (
    DeadlineExceeded,
    Invalid,
    NotFound,
    Overloaded,
    ScoregateError,
    UnknownMetric,
    bare,
)
from service.core.lanes import BULK
from service.images.loader import Base64, ImageRef, Source, Url
from service.metrics.common.contract import Metric, MetricOptions, Score
from service.metrics.common.registry import rewards
from service.observability.notes import Code
from service.scoring.engine import Engine
from service.scoring.plan import UnopenedItem
from service.scoring.report import MetricResult, most_telling
from service.serving.admission import Place, WaitingRoom
from service.serving.context import Context, free
from service.web.endpoints import context_of, header_timeout
from service.web.problems import headers_of
from service.wiring.bootstrap import Service

log = logging.getLogger("scoregate.dialects")

WINDOWS_AT_ONCE = 2  # a window is prepared while the last calls of the one before run
PAUSES_S = 0.25, 4.0  # before the first repetition, which each further one doubles, and the longest
MAX_RETRY_AFTER_S = 30.0  # longest `Retry-After`
TEMPORARY_STATUSES = {408, 429, 502, 503, 504}
UNAVAILABLE_STATUS = 503

Outcomes = Mapping[str, MetricResult]


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    A picture, its prompt and its metrics.

    Attributes:
        options: by metric, instead of those of the settings.
        more: the other frames, if the picture is the first one of a video.
    """

    prompt: str
    image: Source
    metrics: tuple[str, ...]
    options: Mapping[str, MetricOptions] = field(default_factory=dict)
    more: Sequence[Source] = ()


class DialectScoring:
    """
    The scoring of the dialects on *service*, with the metric and the options of the settings.

    Args:
        pauses_s: the pause before the first repetition, and the longest, in seconds.

    Raises:
        SettingsError: the metric in the settings does not exist, or has other options.
    """

    def __init__(self, service: Service, pauses_s: tuple[float, float] = PAUSES_S) -> None:
        self._service, self._pauses_s = service, pauses_s
        self._rewards = rewards(service.metrics, service.settings.dialects)
        server = service.settings.server
        self._room = WaitingRoom(max(server.unfinished_bodies_mb, server.body_limit_mb) * 2**20)
        self._logged = set[Code]()

    def metric(self, requested: str | None) -> str:
        """Return the *requested* metric, or else that of the settings.  Raises `UnknownMetric`."""
        name = requested or self._rewards.metric
        self._service.engine.catalog.handles([name])
        return name

    def metric_of_path(self, name: str) -> str:
        """Return the metric of a path.  Raises `NotFound`."""
        if reason := self._service.engine.catalog.absent(name):
            raise NotFound(f"no path of this dialect, or no metric: {reason}")
        return name

    @property
    def known(self) -> Mapping[str, Metric]:
        """Return every declared metric, by name."""
        return self._service.metrics

    def absent(self, metric: str) -> str:
        """Return why *metric* is not served; empty if it is."""
        return self._service.engine.catalog.absent(metric)

    def unserved(self, metrics: Iterable[str]) -> dict[str, UnknownMetric]:
        """Return the errors of those *metrics* that are not served."""
        return {name: UnknownMetric(why) for name in metrics if (why := self.absent(name))}

    def options(self, metric: Metric) -> MetricOptions:
        """Return the options of the settings."""
        return self._rewards.options.get(metric.name) or metric.options()

    @property
    def metrics(self) -> list[str]:
        """Return the served metrics, that of the settings first."""
        return [*dict.fromkeys([self._rewards.metric, *self._service.engine.metrics])]

    def check_number(self, images: int) -> None:
        """Check the number of *images* before any of them is read.  Raises `Invalid`."""
        most = self._service.settings.server.max_items
        if not 1 <= images <= most:
            raise Invalid(f"the request has {images} pictures; from 1 to {most} are allowed")

    def check_shard(self, images: int) -> None:
        """Check the number of a trainer's pictures, which come in one request.  Raises `Invalid`."""
        most = self._service.settings.dialects.max_pictures
        if not 1 <= images <= most:
            raise Invalid(
                f"the request has {images} pictures; from 1 to {most} are allowed "
                "(the setting dialects.max_pictures)"
            )

    async def scored(
        self, request: Request, wanted: Sequence[Wanted], timeout_s: float, *, in_windows: bool = False
    ) -> Sequence[Outcomes]:
        """
        Score each of *wanted*, and return the outcome of each metric, in order.

        Args:
            timeout_s: seconds from the first byte of the request, unless a header sets a timeout.
            in_windows: allow more pictures than `/score`, and score that many at a time.

        Raises:
            Invalid: there are too few or too many pictures.
            Forbidden: the key may not use the bulk lane.
            CallerGone: the caller has disconnected.
        """
        if not in_windows:
            self.check_number(len(wanted))
        context = self.context(request, len(wanted), timeout_s)
        return await while_connected(request.receive, self.in_windows(wanted, context))

    def context(self, request: Request, items: int, timeout_s: float) -> Context:
        """Build the context of a request in the bulk lane.  Args and errors as of `scored`."""
        request.state.items = items
        timeout_ms = header_timeout(request) or round(timeout_s * 1000)
        return context_of(self._service, request, timeout_ms, BULK)

    async def in_windows(self, wanted: Sequence[Wanted], context: Context) -> Sequence[Outcomes]:
        """Score each of *wanted*, and return the outcomes in order, whether or not the caller waits."""
        works = (self._window(each, context) for each in self._windows(wanted))
        return [*chain.from_iterable(await side_by_side(works, lambda: WINDOWS_AT_ONCE))]

    def _windows(self, wanted: Sequence[Wanted]) -> Iterator[Sequence[Wanted]]:
        size = self._service.settings.server.max_items
        return (wanted[start : start + size] for start in range(0, len(wanted), size))

    async def _window(self, wanted: Sequence[Wanted], context: Context) -> Sequence[Outcomes]:
        """Score one window.  If there is no room to wait, that error is each outcome."""
        images = shared(each.image for each in wanted)
        items = [
            UnopenedItem(
                each.prompt,
                [image, *map(ImageRef, each.more)],
                {**self._rewards.options, **each.options},
            )
            for each, image in zip(wanted, images, strict=True)
        ]
        try:
            with self._room.place(sum(map(size_of, wanted)), len(wanted)) as place:
                context = replace(context, place=place)
                metrics = [each.metrics for each in wanted]
                window = Window(self._service.engine, items, metrics, context, self._pauses_s)
                outcomes = await window.outcomes(place)
        except Overloaded as error:
            return [dict.fromkeys(each.metrics, bare(error)) for each in wanted]
        self._log(window.warned)
        return outcomes

    def _log(self, kinds: Iterable[Code]) -> None:
        """
        Log each kind of warning once: these formats have no field for them.

        A Prometheus metric counts them.  Sentences may quote a prompt, so they are not logged.
        """
        for code in sorted(set(kinds) - self._logged):
            self._logged.add(code)
            log.warning("scores of a dialect came with a warning; POST /score shows it", extra={"code": code})


class Window:
    """
    Items of one request, scored again until each has a score or a permanent error.

    Args:
        metrics: the metrics of each item.
        pauses_s: see `DialectScoring`.

    Attributes:
        warned: the kinds of warnings of the scores.
    """

    def __init__(
        self,
        engine: Engine,
        items: Sequence[UnopenedItem],
        metrics: Sequence[tuple[str, ...]],
        context: Context,
        pauses_s: tuple[float, float] = PAUSES_S,
    ) -> None:
        self._engine, self._items, self._context = engine, items, context
        self._pauses_s = pauses_s
        self._missing = dict(enumerate(metrics))  # metrics without a lasting outcome, by the item's number
        self._outcomes: list[dict[str, MetricResult]] = [{} for _ in items]
        self._charged: set[int] = set()  # items that the quota was charged for
        self.warned = set[Code]()

    async def outcomes(self, place: Place) -> Sequence[Outcomes]:
        """
        Return the outcome of each metric for each item; temporary errors stay if the deadline is near.

        Raises:
            Overloaded: there is no room to wait.
        """
        loop, (backoff_s, longest_s) = asyncio.get_running_loop(), self._pauses_s
        while True:
            await self._score_missing()
            if not self._missing or loop.time() >= self._context.deadline:
                return self._outcomes
            place.take()
            pause_s = max(backoff_s * random.uniform(0.5, 1.5), place.pause_s)
            if loop.time() + pause_s >= self._context.deadline:
                return self._outcomes
            await asyncio.sleep(pause_s)
            backoff_s = min(2 * backoff_s, longest_s)

    async def _score_missing(self) -> None:
        """Score the missing metrics once; items with the same ones, charged to a quota or not, together."""
        groups: dict[tuple[tuple[str, ...], bool], list[int]] = {}
        for number, metrics in self._missing.items():
            groups.setdefault((metrics, number in self._charged), []).append(number)
        await side_by_side([self._score(*group, numbers) for group, numbers in groups.items()])
        temporary = {
            number: tuple(name for name, each in self._outcomes[number].items() if is_temporary(each))
            for number in self._missing
        }
        self._missing = {number: metrics for number, metrics in temporary.items() if metrics}

    async def _score(self, metrics: tuple[str, ...], charged: bool, numbers: Sequence[int]) -> None:
        if asyncio.get_running_loop().time() >= self._context.deadline:  # others took all the time
            for number in numbers:
                late = dict.fromkeys(metrics, DeadlineExceeded(stage="queue"))
                self._outcomes[number] = late | self._outcomes[number]
            return
        context = self._context.charging(free if charged else partial(self._charge, numbers))
        try:
            report = await self._engine.score([self._items[n] for n in numbers], metrics, context)
        except ScoregateError as error:
            for number in numbers:
                self._outcomes[number] |= dict.fromkeys(metrics, bare(error))
            return
        self.warned |= {warned.note.code for warned in report.warnings}
        for number, item in zip(numbers, report.items, strict=True):
            self._outcomes[number] |= item.results

    def _charge(self, numbers: Sequence[int], pairs: int) -> None:
        """Charge the quota for items, which are then scored again for free, also if this attempt fails."""
        self._context.account.charge(pairs)
        self._charged.update(numbers)


def shared(sources: Iterable[Source]) -> list[ImageRef]:
    """Return the picture of each source; repeated sources and equal URLs share one."""
    found: dict[Url | int, ImageRef] = {}
    keys = [(source if isinstance(source, Url) else id(source), source) for source in sources]
    return [found.setdefault(key, ImageRef(source)) for key, source in keys]


def size_of(wanted: Wanted) -> int:
    """Return the bytes that a picture or a video holds while it waits."""
    size = 0
    for source in (wanted.image, *wanted.more):
        match source:
            case Base64(text) | Url(text):
                size += len(text)
            case encoded:
                size += len(encoded)
    return size


def is_temporary(outcome: MetricResult) -> bool:
    """Return True if the same request may succeed later."""
    return isinstance(outcome, ScoregateError) and outcome.status in TEMPORARY_STATUSES


def answer_to(error: ScoregateError) -> tuple[int, dict[str, str]]:
    """
    Return the status and the headers of the response to *error*.

    Temporary failures return 503 with `Retry-After`.  Clients with urllib3's retries then wait and go on; a
    bare 503, a 429, a 502 or a 504 ends them.  No other error has that header, or they would retry forever.
    """
    status = UNAVAILABLE_STATUS if is_temporary(error) else error.status
    return status, headers_of(error, status, MAX_RETRY_AFTER_S)


def raise_most_telling(outcomes: Iterable[tuple[str, Mapping[str, MetricResult]]]) -> None:
    """Raise the most important error of a request, if there is one; *outcomes* are named by place."""
    errors = [
        outcome.of_part(place)
        for place, found in outcomes
        for outcome in found.values()
        if isinstance(outcome, ScoregateError)
    ]
    if errors:
        raise most_telling(errors)


def values_of(outcomes: Sequence[Outcomes], metric: str, named: str) -> list[float]:
    """
    Return the score of each picture by *metric*.  Raises the most important error if one has none.

    Args:
        named: what the format calls an entry, for errors.
    """
    raise_most_telling((f"{named} {n}", {metric: each[metric]}) for n, each in enumerate(outcomes))
    return [score.value for each in outcomes if isinstance(score := each[metric], Score)]
