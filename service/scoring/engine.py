"""Scoring of items by metrics under a deadline; each metric of each input runs concurrently."""

import asyncio
import logging
import math
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import replace
from functools import partial
from itertools import chain
from time import monotonic
from typing import Any, TypeVar

from models.core.contract import ModelInfo
from models.images.image import ImageError
from service.core.concurrency.budget import one_caller
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.tasks import side_by_side
from service.core.errors import (
    DeadlineExceeded,
    ImageUndecodable,
    ModelChanged,
    ModelFault,
    ScoregateError,
    bare,
)
from service.images.loader import ImageLoader
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls
from service.observability.notes import Code, Note
from service.questions.writer import QuestionWriter
from service.scoring.catalog import MetricCatalog
from service.scoring.plan import Input, Plan, UnopenedItem, Workload, broken, opened
from service.scoring.report import ItemReport, MetricResult, Report, demo_notes, report_of_item
from service.serving.backends.contract import not_decoded
from service.serving.context import Context, free
from service.serving.handle import Handle, used
from service.serving.runtime import Runtime

log = logging.getLogger("scoregate.engine")

T = TypeVar("T")
Finished = Callable[[int, ItemReport, Sequence[Note]], object]


class Engine:
    """
    Scores items with the runtime's models.

    Args:
        known: all declared metrics.
        cpu: the CPU threads of each lane, for metrics without a model.
        demo: names of demo models.

    Attributes:
        catalog: the metrics that are served.
        images: opens images.
    """

    def __init__(
        self,
        known: Mapping[str, Metric],
        runtime: Runtime,
        writer: QuestionWriter,
        images: ImageLoader,
        cpu: Mapping[str, FairThreads],
        demo: Collection[str] = (),
    ) -> None:
        self._writer, self.images, self._cpu, self.demo = writer, images, cpu, demo
        self.catalog = MetricCatalog(known, runtime)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics that are served, by name."""
        return self.catalog.metrics

    def admit(self, items: Sequence[UnopenedItem], metrics: Sequence[str], context: Context) -> None:
        """Check admission without charging quota.  Same errors as `score`."""
        Plan(items, metrics, self.catalog, context.lane).work.admit(context)

    async def score(self, items: Sequence[UnopenedItem], metrics: Sequence[str], context: Context) -> Report:
        """
        Return a report with one entry per item, in order; failures of a metric are results in it.

        Args:
            metrics: score the items without metrics of their own.

        Raises:
            ModelChanged: models were replaced twice, during the work and during its repetition.
            ...: see `score_once`.
        """
        return await repeated(lambda context: self.score_once(items, metrics, context), context)

    async def score_once(
        self,
        items: Sequence[UnopenedItem],
        metrics: Sequence[str],
        context: Context,
        finished: Finished | None = None,
        *,
        counted: bool = True,
    ) -> Report:
        """
        Return the report of a part of a request: plan it, admit it, open its films, score it and report.

        Args:
            finished: called with the index and the report of an item when it is scored, and with the warnings
                about all; in any order, not for one that needs no work.  What it raises ends the request.
            counted: False if the caller counts the report in the Prometheus metrics, with other parts.

        Raises:
            ModelChanged: a model is not the one that the request has used.
            UnknownMetric: a metric is not served here.
            LaneFull, Overloaded: a model that it needs is full, before any work is done.
            TooLarge: the request needs more of a model than any request may.
            QuotaExceeded, LargerThanQuota: it exceeds the caller's quota.
            Invalid: an item has images that none of the metrics uses.
        """
        plan = Plan(items, metrics, self.catalog, context.lane)
        if context.place is not None:  # the models may go while the request waits
            await plan.work.wait_for_room(context, context.place)
        context.since = monotonic()
        with one_caller(context.account.name), used(plan.handles.values(), context):
            plan.work.admit(context)  # a full service fetches and opens no picture
            if plan.films.images and await plan.films.count(self.images, context):
                plan = Plan(items, metrics, self.catalog, context.lane)
                plan.work.admit(context)  # now the work of all frames is known
                plan.films.keep()
            context.account.charge(sum(map(len, plan.by_metric)))
            with plan.work.reserved():
                if finished:
                    score = partial(self._finish, plan=plan, context=context, finished=finished)
                else:
                    score = partial(self._score_input, work=plan.work, context=context)
                if len(plan.inputs) == 1:  # the usual request needs no group
                    await score(plan.inputs[0])
                else:
                    await side_by_side(map(score, plan.inputs), plan.work.at_once)
        raise_if_changed(chain.from_iterable(input.results.values() for input in plan.inputs))
        with context.span.child("fold"):
            report = await self._report(plan, context)
        if counted:
            report.count(context.instruments)
        return report

    async def _report(self, plan: Plan, context: Context) -> Report:
        """Return the report of a scored plan."""
        infos = infos_of(plan.handles, context)
        items = []
        for index in range(len(plan.items)):
            items.append(self._item_report(plan, index, infos))
            if len(plan.items) > 1:  # each may have many frames: other requests have their turns between them
                await asyncio.sleep(0)
        return Report(items, infos, demo_notes(infos, self.demo))

    def _item_report(self, plan: Plan, index: int, infos: Mapping[str, ModelInfo]) -> ItemReport:
        """Return the report of a scored item."""
        inputs = plan.by_metric[index]
        used = dict.fromkeys(handle.name for name in inputs for handle in self.catalog.used[name])
        return report_of_item(plan.items[index], inputs, [infos[name] for name in used], self.catalog.known)

    async def _finish(self, input: Input, plan: Plan, context: Context, finished: Finished) -> None:
        """Score *input*; if it is the last one of its item, pass the item's report on."""
        await self._score_input(input, plan.work, context)
        if plan.is_scored(input.index):
            infos, index = infos_of(plan.handles, context), input.index
            finished(index, self._item_report(plan, index, infos), demo_notes(infos, self.demo))

    async def _score_input(self, input: Input, work: Workload, context: Context) -> None:
        """Set the result of each metric of *input*; all fail if an image cannot be opened."""
        context = context.for_one_frame()
        if asyncio.get_running_loop().time() >= context.deadline:  # others took all the time
            input.results = dict.fromkeys(input.metrics, DeadlineExceeded(stage="queue"))
            return
        try:
            with work.frame() as context.queued:
                async with (
                    asyncio.timeout_at(context.deadline) as opening,
                    opened(input, self.images, context) as (item, notes),
                ):
                    opening.reschedule(None)  # from here on each metric has the deadline itself
                    works = [
                        self.score_metric(name, item, each, context) for name, each in input.metrics.items()
                    ]
                    results = [await works[0]] if len(works) == 1 else await side_by_side(works)
                    if item.references or item.source or item.frames:
                        results = [await self._located(each, input, item, context) for each in results]
                    if notes:
                        results = [each.noted(notes) if isinstance(each, Score) else each for each in results]
        except (TimeoutError, ScoregateError, ImageError) as exc:
            fault = DeadlineExceeded(stage="decode") if isinstance(exc, TimeoutError) else error_of(exc)
            input.results = dict.fromkeys(input.metrics, fault)
            return
        input.results = dict(zip(input.metrics, results, strict=True))

    async def _located(
        self, result: MetricResult, input: Input, item: Item, context: Context
    ) -> MetricResult:
        """Return *result*; if one of several images has broken pixels, an error that names it."""
        if not isinstance(result, ImageUndecodable):
            return result
        place = await self._cpu[context.lane].run(broken, input, item)
        return result.of_part(place) if place else result

    async def score_metric(
        self, name: str, item: Item, options: MetricOptions, context: Context
    ) -> MetricResult:
        """Return the result of one metric within the deadline."""
        with context.span.child("metric", metric=name) as span:
            context = context.for_one_metric(span)
            limit = asyncio.timeout_at(context.deadline)
            try:
                async with limit:
                    score = checked(name, await self._call(name, item, options, context), options, context)
                    return (
                        score.noted(unknown_tokens(context.calls.unknown)) if context.calls.unknown else score
                    )
            except Exception as exc:
                late = isinstance(exc, TimeoutError) and limit.expired()
                error = DeadlineExceeded(stage=context.calls.stage) if late else error_of(exc, name)
                span.note(error=error.code)
                return error

    def _call(self, name: str, item: Item, options: MetricOptions, context: Context) -> Awaitable[Any]:
        """Call a metric; one without a model runs on a CPU thread, since it would block the event loop."""
        metric = self.catalog.configured[name]
        parts = partial(self._score_parts, context)
        style = metric.style_of(options) if metric.style else None
        models = ModelCalls(self.catalog.models[name].get, self._writer, context, parts, style)
        score = metric.score(item, models, options)
        if not metric.computes:
            return score
        context.calls.stage = "decode"
        return self._cpu[context.lane].run(run_to_end, score)

    async def _score_parts(
        self, context: Context, item: Item, parts: Mapping[str, MetricOptions]
    ) -> dict[str, MetricResult]:
        """Return the results of a composite's parts, which share its context and deadline."""

        async def score(name: str, options: MetricOptions) -> MetricResult:
            try:
                return checked(name, await self._call(name, item, options, context), options, context)
            except Exception as exc:
                return error_of(exc, name)

        results = await side_by_side([score(name, options) for name, options in parts.items()])
        return dict(zip(parts, results, strict=True))


def infos_of(handles: Mapping[str, Handle], context: Context) -> dict[str, ModelInfo]:
    """Return each model that a request may have used, by name: as it was used, or as it is now."""
    used = context.request.models
    return {name: used.get(name, handle.backend.info) for name, handle in handles.items()}


def checked(name: str, score: Any, options: MetricOptions, context: Context) -> Score:
    """
    Return the score of a metric, with its cache status and a warning for each option without effect.

    Raises `TypeError` or `ModelFault`.
    """
    if not isinstance(score, Score):
        raise TypeError(f"{name} returned a {type(score).__name__}, not a Score")
    if not math.isfinite(score.value):
        raise ModelFault("the score is not a finite number")
    found = score.noted(unused) if (unused := options.unused()) else score
    return replace(found, cache=context.found) if context.calls.lookups and not found.cache else found


def unknown_tokens(shares: Sequence[float]) -> list[Note]:
    """Return the warning about texts with unknown tokens of a model, with the largest share."""
    text = f"{max(shares):.0%} of the tokens of a text are unknown to the model, which reads them all as one"
    return [Note(Code.UNKNOWN_TOKENS, text, round(max(shares), 4))]


def error_of(exc: Exception, metric: str = "") -> ScoregateError:
    """Return the error that a response shows for *exc*; log it if it is a fault of the *metric*."""
    if isinstance(exc, ScoregateError):
        return bare(exc)
    if isinstance(exc, ImageError):
        return not_decoded(exc)
    log.error("metric failed", extra={"metric": metric}, exc_info=exc)
    return ScoregateError()


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that awaits nothing.  Raises `RuntimeError` if it does."""
    try:
        work.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    work.close()
    raise RuntimeError("a metric without roles awaits something")


async def repeated(work: Callable[[Context], Awaitable[T]], context: Context) -> T:
    """
    Return the result of *work* on a whole request, repeated once if a model was replaced meanwhile.

    Scores of two models would stand under one name otherwise.  The repetition is not charged.

    Raises:
        ModelChanged: a model was replaced during the repetition, too.
    """
    try:
        return await work(context)
    except ModelChanged:
        context.request.models.clear()
        return await work(context.charging(free))


def raise_if_changed(results: Iterable[object]) -> None:
    """Raise the first `ModelChanged` among *results*: it is an error of the request, not of one score."""
    for result in results:
        if isinstance(result, ModelChanged):
            raise result
