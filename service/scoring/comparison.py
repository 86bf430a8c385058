"""Comparison of images of one prompt in pairs: by their scores, or by a metric that gets two."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from math import hypot
from time import monotonic
from typing import NamedTuple

from models.core.contract import ModelInfo
from models.images.image import Image
from service.core.concurrency.budget import one_caller
from service.core.concurrency.tasks import side_by_side
from service.core.errors import REFUSALS, BadImage, DeadlineExceeded, Fault, Invalid, ScoregateError
from service.images.frames import Frame
from service.images.loader import ImageRef
from service.metrics.common.contract import REFERENCES, SOURCE, Item, MetricOptions, Score
from service.observability.notes import Note
from service.scoring.engine import Engine, infos_of, raise_if_changed, repeated
from service.scoring.plan import Input, UnopenedItem, Workload, demands_of, notes
from service.scoring.report import (
    ItemReport,
    MetricResult,
    Report,
    count_refused,
    demo_notes,
    most_telling,
    unknown_words,
)
from service.scoring.win_rates import FailedPair, Pair, Schedule, Winner
from service.serving.context import Context
from service.serving.handle import used

ROUNDING_BY_DTYPE = {"float32": 2.0**-24, "float16": 2.0**-11}  # relative error of one operation
COARSEST_ROUNDING = 2.0**-8  # bfloat16 has it; the precision of other servers is not known

ORDERS_OF_A_PAIR = 2  # orders of a pair


@dataclass(frozen=True, slots=True)
class ComparedGroup:
    """
    Images of one prompt, and how they are compared.

    Attributes:
        items: each with the options of *metric*, and the source if there is one.
        noise: the largest difference of two scores that is a tie; None for that of the scores themselves.
    """

    prompt: str
    items: Sequence[UnopenedItem]
    metric: str
    options: MetricOptions
    schedule: Schedule
    noise: float | None = None

    @property
    def source(self) -> ImageRef | None:
        """The image before the edits."""
        return self.items[0].source


@dataclass(frozen=True, slots=True)
class Compared:
    """
    The outcome of a comparison of *count* images.

    Attributes:
        done: the pairs, failed ones among them, in the order of the schedule.
        report: the models and warnings.
    """

    count: int
    done: Sequence[Pair | FailedPair]
    report: Report

    @property
    def pairs(self) -> list[Pair]:
        """The pairs that have a verdict."""
        return [pair for pair in self.done if isinstance(pair, Pair)]

    @property
    def failed(self) -> list[FailedPair]:
        """The pairs that have none."""
        return [pair for pair in self.done if isinstance(pair, FailedPair)]

    def raise_if_failed(self) -> None:
        """
        Raise the error of the whole request if no pair has a verdict, unless the images are its reason.

        Raises:
            DeadlineExceeded: some pair was late.
            LaneFull, Overloaded, NotReady: all pairs were refused.
        """
        if self.pairs:
            return
        errors = [pair.error for pair in self.failed]
        for error in errors:
            if isinstance(error, DeadlineExceeded):
                raise DeadlineExceeded(stage=error.stage)
        if all(isinstance(error, REFUSALS) for error in errors):
            raise most_telling(errors)


async def compared(engine: Engine, group: ComparedGroup, context: Context) -> Compared:
    """
    Compare the images of *group*: by a metric that gets both, in both orders, or by their scores.

    Raises:
        Invalid: an image, or the source, cannot be used by the metric.
        UnknownMetric, LaneFull, Overloaded, TooLarge, QuotaExceeded, ModelChanged: see `Engine.score`.
        DeadlineExceeded, NotReady: no pair has a verdict, see `Compared.raise_if_failed`.
    """
    metric = engine.catalog.known[group.metric]
    if group.source is not None and SOURCE not in metric.uses_of(group.options):
        detail = f"{group.metric} with these options does not use it"
        raise Invalid(f"/source: {detail}", faults=[Fault("/source", "unused_picture", detail)])
    if metric.pairwise and metric.pairwise(group.options):
        check_pairwise(engine, group)
        outcome = await repeated(lambda context: judged(engine, group, context), context)
        outcome.raise_if_failed()
        count_refused(((group.metric, pair.error) for pair in outcome.failed), context.instruments)
    else:
        outcome = by_scores(group, await engine.score(group.items, [group.metric], context), engine)
        outcome.raise_if_failed()
    return outcome


def check_pairwise(engine: Engine, group: ComparedGroup) -> None:
    """Raise `Invalid` if the metric needs what a comparison does not have, or does not use the noise."""
    if group.noise is not None:
        detail = "is for metrics that see one picture"
        raise Invalid(f"/noise: {detail}", faults=[Fault("/noise", "invalid", detail)])
    uses = engine.catalog.known[group.metric].uses_of(group.options)
    if REFERENCES in uses:
        raise Invalid(f"{group.metric} with these options needs references, and a comparison has none")
    if SOURCE in uses and group.source is None:
        detail = f"{group.metric} with these options needs it"
        raise Invalid(f"/source: {detail}", faults=[Fault("/source", "missing", detail)])
    detail = "a metric that compares two images at once needs one image each, without frames"
    faults = [Fault(item.place, "invalid", detail) for item in group.items if len(item.frames) > 1]
    if faults:
        raise Invalid(f"{faults[0].pointer}: {detail}", faults=faults)


def by_scores(group: ComparedGroup, report: Report, engine: Engine) -> Compared:
    """Compare the scores of images: a difference within their noise is a tie."""
    results = [item.results[group.metric] for item in report.items]
    lower = engine.catalog.known[group.metric].lower_is_better
    rounding = max(
        (ROUNDING_BY_DTYPE.get(info.dtype, COARSEST_ROUNDING) for info in report.infos.values()), default=0.0
    )

    def verdict(a: int, b: int) -> Pair | FailedPair:
        first, second = results[a], results[b]
        for index, result in ((a, first), (b, second)):
            if isinstance(result, ScoregateError):
                return FailedPair(a, b, result.of_part(group.items[index].place))
        assert isinstance(first, Score)
        assert isinstance(second, Score)
        noise = noise_of(first, second, rounding) if group.noise is None else group.noise
        ahead = (second.value - first.value) if lower else (first.value - second.value)
        winner: Winner = "tie" if abs(ahead) <= noise else "a" if ahead > 0 else "b"
        return Pair(a, b, winner, details={"difference": first.value - second.value, "noise": noise})

    done = list[Pair | FailedPair]()
    while coming := group.schedule.next_round(len(results), done):
        done += [verdict(a, b) for a, b in coming]
    return Compared(len(results), done, report)


def noise_of(first: Score, second: Score, rounding: float) -> float:
    """
    Return the noise of a difference of scores: of their samples, or at least of their arithmetic.

    Args:
        rounding: relative, of the coarsest number format among the models.
    """
    return max(hypot(first.error, second.error), rounding * max(abs(first.value), abs(second.value)))


async def judged(engine: Engine, group: ComparedGroup, context: Context) -> Compared:
    """Compare images by a metric that gets both.  Raises as `compared`."""
    handles, count = engine.catalog.handles([group.metric]), len(group.items)
    metric = engine.catalog.known[group.metric]
    orders = ORDERS_OF_A_PAIR * group.schedule.pairs(count)
    needed = demands_of(metric, group.options, group.prompt, engine.catalog)
    work = Workload({handle: demand * orders for handle, demand in needed}, orders, context.lane)
    context.since = monotonic()
    async with AsyncExitStack() as stack:
        stack.enter_context(one_caller(context.account.name))
        stack.enter_context(used(handles.values(), context))
        work.admit(context)  # a full service opens no picture
        context.account.charge(orders)
        stack.enter_context(work.reserved())
        try:
            async with asyncio.timeout_at(context.deadline):
                images = await opened(engine, group, stack, context)
        except TimeoutError:
            raise DeadlineExceeded(stage="decode") from None
        referee = Referee(engine, group, images, work, context)
        done = list[Pair | FailedPair]()
        while coming := group.schedule.next_round(count, done):
            done += await referee.verdicts(coming)
    return Compared(count, done, referee.report(infos_of(handles, context)))


class OpenedImages(NamedTuple):
    """The images of a group as they were opened, and the errors of those that cannot be."""

    read: Mapping[ImageRef, Image]
    failed: Mapping[ImageRef, ScoregateError]


async def opened(
    engine: Engine, group: ComparedGroup, stack: AsyncExitStack, context: Context
) -> OpenedImages:
    """
    Open every image once for all pairs, with the memory of all pixels reserved in one step.

    If all together need too much memory, all of them fail.
    """
    places = {item.frames[0]: item.place for item in group.items}
    if group.source is not None:
        places[group.source] = "/source"
    failed: dict[ImageRef, BadImage] = {}
    read = await engine.images.read_together(places, stack, context, failed)
    for ref in [ref for ref in read if ref.video]:
        failed[ref] = BadImage("it is a video; metrics that compare two images at once need still images")
        del read[ref]
    try:
        await stack.enter_async_context(engine.images.pixels.reserve([*read.values()], context))
    except BadImage as error:
        return OpenedImages({}, dict.fromkeys(places, error))
    return OpenedImages(read, failed)


class Referee:
    """
    Gets the verdicts of a pairwise metric.

    Args:
        images: of the group.
    """

    def __init__(
        self, engine: Engine, group: ComparedGroup, images: OpenedImages, work: Workload, context: Context
    ) -> None:
        self._engine, self._group, self._work, self._context = engine, group, work, context
        self._read, self._failed = images
        self._noted: dict[int, list[Note]] = {}
        for index, item in enumerate(group.items):
            if item.frames[0] in self._read:
                self._noted[index] = [*notes(Input(item, index, (Frame(0),), 1, (), None), self._read)]
        least, largest = engine.catalog.known[group.metric].range_of(group.options)
        third = (largest - least) / 3
        self._middle = least + third, largest - third

    async def verdicts(self, pairs: Sequence[tuple[int, int]]) -> list[Pair | FailedPair]:
        """Return the verdict on each of *pairs*, from both orders."""
        orders = (self._order(*order) for pair in pairs for order in (pair, pair[::-1]))
        results = await side_by_side(orders, self._work.at_once)
        raise_if_changed(results)
        return [
            self._verdict(
                a, b, *results[ORDERS_OF_A_PAIR * place : ORDERS_OF_A_PAIR * place + ORDERS_OF_A_PAIR]
            )
            for place, (a, b) in enumerate(pairs)
        ]

    async def _order(self, candidate: int, rival: int) -> MetricResult:
        """Return the metric's result for a candidate that is compared with its rival."""
        group, context = self._group, self._context.for_one_frame()
        refs = [group.items[candidate].frames[0], group.items[rival].frames[0]]
        if group.source is not None:
            refs.append(group.source)
        with self._work.frame() as context.queued:
            for ref in refs:
                if ref in self._failed:
                    return self._failed[ref]
            image, other, *before = (self._read[ref] for ref in refs)
            item = Item(image, group.prompt, source=before[0] if before else None, rival=other)
            result = await self._engine.score_metric(group.metric, item, group.options, context)
        value = result.value if isinstance(result, Score) else result
        self._context.instruments.count_score(group.metric, value)
        if isinstance(result, Score):
            self._noted[candidate] += result.notes
        return result

    def _verdict(self, a: int, b: int, of_a: MetricResult, of_b: MetricResult) -> Pair | FailedPair:
        """Return the verdict of both orders: who wins has to win in both."""
        for result in (of_a, of_b):
            if isinstance(result, ScoregateError):
                return FailedPair(a, b, result)
        assert isinstance(of_a, Score)
        assert isinstance(of_b, Score)
        first, second = self._side(of_a.value, "a", "b"), self._side(of_b.value, "b", "a")
        shown = [
            {"candidate": index, "score": score.value, **score.details}
            for index, score in ((a, of_a), (b, of_b))
        ]
        return Pair(a, b, first if first == second else "tie", first == second, {"orders": shown})

    def _side(self, score: float, candidate: Winner, rival: Winner) -> Winner:
        """Return the winner by a score: "tie" in the middle third of the range."""
        low, high = self._middle
        return candidate if score > high else rival if score < low else "tie"

    def report(self, infos: Mapping[str, ModelInfo]) -> Report:
        """Return the report with *infos* of the models, and count its warnings."""
        items = [
            ItemReport(item, {}, tuple(dict.fromkeys(self._noted.get(index, ()))))
            for index, item in enumerate(self._group.items)
        ]
        notes = [*demo_notes(infos, self._engine.demo), *unknown_words(self._group.prompt, infos.values())]
        report = Report(items, infos, notes)
        report.count(self._context.instruments)
        return report
