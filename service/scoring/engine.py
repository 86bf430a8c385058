"""Metrics over items under a deadline: one coroutine per (item, metric), and what comes of each."""

import asyncio
import logging
import math
from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from models.core.contract import ModelInfo
from models.images.image import ImageError
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.together import side_by_side
from service.core.concurrency.turns import one_caller
from service.core.errors import (
    REFUSALS,
    DeadlineExceeded,
    ImageUndecodable,
    ModelFault,
    NotReady,
    ScoregateError,
    bare,
)
from service.images.loader import ImageLoader
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import Models
from service.questions.sets import QuestionSet
from service.questions.style import Style
from service.questions.writer import QuestionWriter
from service.scoring.catalog import MetricCatalog
from service.scoring.folding import folded
from service.scoring.frames import ItemPlan, MetricInput, check_used
from service.scoring.inputs import LoadedInput, broken, shown
from service.scoring.items import UnopenedItem
from service.scoring.report import ItemReport, MetricResult, Report, notes
from service.scoring.workload import Workload, workload
from service.serving.context import CacheStatus, Context
from service.serving.demand import Demand
from service.serving.handle import Handle
from service.serving.runtime import Runtime

log = logging.getLogger("scoregate.engine")

T = TypeVar("T")


class Engine:
    """
    Scores items with the runtime's models.

    Args:
        known: every metric that is declared.
        cpu: the CPU threads of each lane, for metrics that ask no model.
        demo: names of demo models.

    Attributes:
        offer: what can be asked for.
    """

    def __init__(
        self,
        known: Mapping[str, Metric],
        runtime: Runtime,
        writer: QuestionWriter,
        pictures: ImageLoader,
        cpu: Mapping[str, FairThreads],
        demo: Collection[str] = (),
    ) -> None:
        self._known, self._runtime, self._writer = known, runtime, writer
        self._pictures, self._cpu, self._demo = pictures, cpu, demo
        self.offer = MetricCatalog(known, runtime)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Those on offer, by name."""
        return self.offer.metrics

    def admit(self, items: Sequence[UnopenedItem], metrics: Sequence[str], context: Context) -> None:
        """Raise what `score` raises before any work is done, and charge nobody."""
        self.offer.handles(metrics)
        self._admitted(items, metrics, context)

    async def score(
        self,
        items: Sequence[UnopenedItem],
        metrics: Sequence[str],
        context: Context,
    ) -> Report:
        """
        A report with one entry per item, in order; what fails is an outcome, never an exception.

        Raises:
            UnknownMetric: a metric is not served here.
            LaneFull, Overloaded: a model that all of it needs takes no more, before any work is done.
            TooLarge: it asks a model for more than any request may.
            QuotaExceeded, LargerThanQuota: its caller may not have so much.
            Invalid: an item has pictures that none of the metrics uses.
        """
        handles = self.offer.handles(metrics)
        with one_caller(context.caller):
            asked, work = self._admitted(items, metrics, context)
            moving = dict.fromkeys(picture for each in asked if each.moving for picture in each.item.frames)
            if await self._pictures.count_frames(moving, context):  # there is more to it than was known
                asked, work = self._admitted(items, metrics, context)
            context.charge(len(items) * len(metrics))
            with work:
                seen, infos = await self._seen(asked, work, handles, context)
        outcomes = iter(seen)
        with context.span.child("fold"):
            scored = [
                ItemReport(
                    each.item,
                    folded(each, dict(zip(each.work, islice(outcomes, len(each.work)), strict=True))),
                )
                for each in asked
            ]
        labels = {name: info.label for name, info in infos.items()}
        report = Report(scored, labels, notes([item.prompt for item in items], infos, self._demo))
        report.count(context.instruments)
        return report

    async def question_sets(
        self, prompts: Sequence[str], style: Style, llm: Handle | None, context: Context
    ) -> list[tuple[QuestionSet, CacheStatus] | ScoregateError]:
        """
        For each prompt, in order, its set and how it was found, or the error that took its place.

        Raises:
            LaneFull, Overloaded: the question LLM takes no more, and some set has to be written.
            TooLarge: there are more to be written than any request may ask for.
            NotReady: the store failed.
            QuotaExceeded, LargerThanQuota: the caller may not have so many.
        """
        if llm and (unwritten := await self._writer.unwritten(prompts, style, llm)):
            llm.admit(context, Demand(len(unwritten), sum(map(len, unwritten))))
        context.charge(len(prompts))
        sets = [self._question_set(prompt, style, llm, context) for prompt in prompts]
        outcomes = await side_by_side(sets)
        refused = {outcome.code: outcome for outcome in outcomes if isinstance(outcome, REFUSALS)}
        if any(not isinstance(outcome, ScoregateError) for outcome in outcomes):
            for error in refused.values():  # what all of it is refused with is counted as it is answered
                context.instruments.count_rejection(error)
        return outcomes

    async def _question_set(
        self, prompt: str, style: Style, llm: Handle | None, context: Context
    ) -> tuple[QuestionSet, CacheStatus] | ScoregateError:
        try:
            async with asyncio.timeout_at(context.deadline):
                return await self._writer.of(prompt, style, llm, context)
        except TimeoutError:
            return DeadlineExceeded()
        except ScoregateError as error:
            return error

    def _admitted(
        self,
        items: Sequence[UnopenedItem],
        metrics: Sequence[str],
        context: Context,
    ) -> tuple[list[ItemPlan], Workload]:
        """What is looked at, and the work on it.  Raises what `score` raises before any work is done."""
        defaults = self.offer.defaults
        known = {name: self._known[name] for name in metrics}
        asked = [
            ItemPlan(item, {name: item.options.get(name) or defaults[name] for name in metrics}, known)
            for item in items
        ]
        check_used(asked)
        work = workload(asked, self._known, context.lane, self._runtime.handle)
        work.admit(context)
        return asked, work

    async def _seen(
        self, asked: Sequence[ItemPlan], work: Workload, handles: Mapping[str, Handle], context: Context
    ) -> tuple[list[dict[str, MetricResult]], dict[str, ModelInfo]]:
        """
        The outcomes of every view, and the models that they are from.

        Where a model was replaced meanwhile, all is asked again: no score may carry the other one's name.
        """
        while True:
            before = {name: (handle.info, handle.backend.replacements) for name, handle in handles.items()}
            seen = await side_by_side(self._views(asked, work, context), work.at_once)
            if all(handle.backend.replacements == before[name][1] for name, handle in handles.items()):
                return seen, {name: info for name, (info, _) in before.items()}

    def _views(
        self, asked: Sequence[ItemPlan], work: Workload, context: Context
    ) -> Iterator[Coroutine[Any, Any, dict[str, MetricResult]]]:
        """The work on every frame or grid of every item, in order, each begun as it is taken."""
        for each in asked:
            for view, options in each.work.items():
                work.begin_frame()
                yield self._view(view, each.item.prompt, options, context)

    async def _view(
        self, view: MetricInput, prompt: str, options: Mapping[str, MetricOptions], context: Context
    ) -> dict[str, MetricResult]:
        """Every metric of one frame or grid; a picture that can't be opened is every metric's error."""
        if asyncio.get_running_loop().time() >= context.deadline:  # while others were worked on
            return dict.fromkeys(options, DeadlineExceeded(stage="queue"))
        try:
            async with asyncio.timeout_at(context.deadline) as opening:
                async with shown(view, self._pictures, context) as seen:
                    opening.reschedule(None)  # from here on each metric keeps the deadline itself
                    item = Item(seen.image, prompt, seen.references, seen.source)
                    outcomes = await side_by_side(
                        [self._metric(name, item, chosen, context) for name, chosen in options.items()]
                    )
                    if view.beside:
                        outcomes = [await self._placed(each, view, seen, context) for each in outcomes]
                    outcomes = [
                        each.noted(seen.notes) if isinstance(each, Score) else each for each in outcomes
                    ]
                    return dict(zip(options, outcomes, strict=True))
        except TimeoutError:
            return dict.fromkeys(options, DeadlineExceeded(stage="decode"))
        except ScoregateError as error:
            return dict.fromkeys(options, bare(error))
        except ImageError as exc:
            return dict.fromkeys(options, ImageUndecodable(str(exc)))

    async def _placed(
        self, outcome: MetricResult, view: MetricInput, seen: LoadedInput, context: Context
    ) -> MetricResult:
        """The outcome; where pixels are broken, naming the picture beside the image that they are of."""
        if not isinstance(outcome, ImageUndecodable):
            return outcome
        shot = await self._cpu[context.lane].run(broken, view, seen)
        return outcome.of_part(shot.place) if shot else outcome

    async def _metric(self, name: str, item: Item, options: MetricOptions, context: Context) -> MetricResult:
        with context.span.child("metric", metric=name) as span:
            outcome = await self._in_time(name, item, options, context.for_one_metric(span))
            if isinstance(outcome, ScoregateError):
                span.note(error=outcome.code)
            return outcome

    async def _in_time(self, name: str, item: Item, options: MetricOptions, context: Context) -> MetricResult:
        try:
            async with asyncio.timeout_at(context.deadline):
                return await self._outcome(name, item, options, context)
        except TimeoutError:
            return DeadlineExceeded(stage=context.stage)

    async def _outcome(self, name: str, item: Item, options: MetricOptions, context: Context) -> MetricResult:
        """What came of one metric, or of a part of a composite, which shares the composite's *context*."""
        try:
            score = await self._scored(self.offer.configured[name], item, options, context)
            if not isinstance(score, Score):
                raise TypeError(f"{name} gave a {type(score).__name__} and not a Score")
        except ScoregateError as error:
            return bare(error)
        except ImageError as exc:
            return ImageUndecodable(str(exc))
        except Exception as exc:
            log.error("metric failed", extra={"metric": name}, exc_info=exc)
            return ScoregateError()
        if not math.isfinite(score.value):
            return ModelFault("the score is not a finite number")
        return score if score.cache else replace(score, cache=context.found)

    async def _scored(self, metric: Metric, item: Item, options: MetricOptions, context: Context) -> Score:
        work = metric.score(item, self._models(metric.name, context), options)
        if not metric.computes:
            return await work
        # It asks no model: whatever takes its time is computed, and must not keep the event loop from others.
        context.stage = "decode"
        return await self._cpu[context.lane].run(run_to_end, work)

    def _models(self, metric: str, context: Context) -> Models:
        """The models of *metric* on behalf of this request."""

        def handle(role: str) -> Handle:
            found = self._runtime.handle(metric, role)
            if found is None:
                raise NotReady(f"no {role} model is configured")
            return found

        async def score(item: Item, others: Mapping[str, MetricOptions]) -> dict[str, MetricResult]:
            outcomes = [self._outcome(name, item, options, context) for name, options in others.items()]
            return dict(zip(others, await side_by_side(outcomes), strict=True))

        def has(role: str) -> bool:
            return self._runtime.handle(metric, role) is not None

        return Models(handle, self._writer, context, score, has)


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that awaits nothing.  Raises `RuntimeError` where it does."""
    try:
        work.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    work.close()
    raise RuntimeError("a metric without roles awaits something")
