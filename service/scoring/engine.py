"""Scoring of items by metrics under a deadline; each metric of each input runs concurrently."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, islice
from time import monotonic

from models.images.image import ImageError
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.together import side_by_side
from service.core.concurrency.turns import one_caller
from service.core.errors import (
    REFUSALS,
    DeadlineExceeded,
    ImageUndecodable,
    ScoregateError,
)
from service.images.loader import ImageLoader
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.questions.sets import QuestionSet
from service.questions.style import Style
from service.questions.writer import QuestionWriter
from service.scoring.asking import Asker
from service.scoring.catalog import MetricCatalog
from service.scoring.folding import folded
from service.scoring.frames import ItemPlan, MetricInput, check_used, keep_used
from service.scoring.inputs import broken, loaded
from service.scoring.items import UnopenedItem
from service.scoring.metric_scorer import MetricScorer, error_of
from service.scoring.repeated import raise_if_changed, repeated
from service.scoring.report import ItemReport, MetricResult, Report, unknown_words, used_demos, vocabularies
from service.scoring.workload import Workload, workload
from service.serving.context import CacheStatus, Context
from service.serving.demand import Demand
from service.serving.handle import Handle, used
from service.serving.runtime import Runtime

log = logging.getLogger("scoregate.engine")


class Engine:
    """
    Scores items with the runtime's models.

    Args:
        known: all declared metrics.
        cpu: the CPU threads of each lane, for metrics without a model.
        demo: names of demo models.

    Attributes:
        catalog: the metrics that are served.
        scorer: scores one input by one metric.
        asker: sends a request's own questions to a VQA model.
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
        self._known, self._runtime, self._writer = known, runtime, writer
        self._images, self._cpu, self._demo = images, cpu, demo
        self.catalog = MetricCatalog(known, runtime)
        self.scorer = MetricScorer(self.catalog, runtime.handle, writer, cpu)
        self.asker = Asker(runtime, images)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics that are served, by name."""
        return self.catalog.metrics

    def admit(self, items: Sequence[UnopenedItem], metrics: Sequence[str], context: Context) -> None:
        """Check admission without charging quota.  Same errors as `score`."""
        self.catalog.handles(metrics)
        self._planned(items, metrics, context)[1].admit(context)

    async def score(self, items: Sequence[UnopenedItem], metrics: Sequence[str], context: Context) -> Report:
        """
        Return a report with one entry per item, in order; failures of a metric are results in it.

        Raises:
            ModelChanged: models were replaced, and again during the repetition.
            ...: see `score_once`.
        """
        return await repeated(lambda context: self.score_once(items, metrics, context), context)

    async def score_once(
        self, items: Sequence[UnopenedItem], metrics: Sequence[str], context: Context
    ) -> Report:
        """
        Return the report of a part of a request.

        Raises:
            ModelChanged: a model is not the one that the request has used.
            UnknownMetric: a metric is not served here.
            LaneFull, Overloaded: a model that all items need is full, before any work is done.
            TooLarge: the request needs more of a model than any request may.
            QuotaExceeded, LargerThanQuota: it exceeds the caller's quota.
            Invalid: an item has images that none of the metrics uses.
        """
        handles = self.catalog.handles(metrics)
        plans, work = self._planned(items, metrics, context)
        if context.place is not None:  # before the request uses its models: they may go meanwhile
            await work.wait_for_room(context, context.place)
        context.since = monotonic()
        with one_caller(context.caller), used(handles.values(), context):
            work.admit(context)  # before any picture is opened: a full service fetches and opens none
            films = dict.fromkeys(image for plan in plans for image in plan.films)
            if await self._images.count_frames(films, context):
                plans, work = self._planned(items, metrics, context)
                work.admit(context)  # again, with the work of all frames
                keep_used(plans)
            context.charge(len(items) * len(metrics))
            with work:
                scoring = (
                    self._score_input(input, plan.item.prompt, options, work, context)
                    for plan in plans
                    for input, options in plan.work.items()
                )
                scored = await side_by_side(scoring, work.at_once)
            raise_if_changed(chain.from_iterable(each.values() for each in scored))
        with context.span.child("fold"):
            results = iter(scored)
            infos = {name: context.request.models.get(name, handle.info) for name, handle in handles.items()}
            taught, reports = vocabularies(infos.values()), []
            for plan in plans:
                of_inputs = dict(zip(plan.work, islice(results, len(plan.work)), strict=True))
                notes = unknown_words(plan.item.prompt, taught)
                reports.append(ItemReport(plan.item, folded(plan, of_inputs), notes))
                if len(plans) > 1:  # each may have many frames: other requests have their turns between them
                    await asyncio.sleep(0)
        report = Report(reports, infos, used_demos([name for name in infos if name in self._demo]))
        report.count(context.instruments)
        return report

    async def question_sets(
        self, prompts: Sequence[str], style: Style, llm: Handle | None, context: Context
    ) -> list[tuple[QuestionSet, CacheStatus] | ScoregateError]:
        """
        Return for each prompt, in order, its question set and cache status, or an error.

        Raises:
            LaneFull, Overloaded: the question LLM is full, and some set has to be written.
            TooLarge: more sets have to be written than any request may need.
            NotReady: the store failed.
            QuotaExceeded, LargerThanQuota: it exceeds the caller's quota.
            ModelChanged: the LLM was replaced, and again during the repetition.
        """
        return await repeated(lambda context: self._question_sets(prompts, style, llm, context), context)

    async def _question_sets(
        self, prompts: Sequence[str], style: Style, llm: Handle | None, context: Context
    ) -> list[tuple[QuestionSet, CacheStatus] | ScoregateError]:
        if llm and (unwritten := await self._writer.unwritten(prompts, style, llm)):
            llm.admit(context, Demand(len(unwritten), sum(map(len, unwritten))))
        context.charge(len(prompts))
        with used([llm] if llm else [], context):
            results = await side_by_side([self._question_set(each, style, llm, context) for each in prompts])
        raise_if_changed(results)
        refused = {result.code: result for result in results if isinstance(result, REFUSALS)}
        if any(not isinstance(result, ScoregateError) for result in results):
            for error in refused.values():  # the rejection of a whole request is counted by its response
                context.instruments.count_rejection(error)
        return results

    async def _question_set(
        self, prompt: str, style: Style, llm: Handle | None, context: Context
    ) -> tuple[QuestionSet, CacheStatus] | ScoregateError:
        try:
            async with asyncio.timeout_at(context.deadline):
                return await self._writer.of(prompt, style, llm, context, admitted=True)
        except TimeoutError:
            return DeadlineExceeded()
        except ScoregateError as error:
            return error

    def _planned(
        self, items: Sequence[UnopenedItem], metrics: Sequence[str], context: Context
    ) -> tuple[list[ItemPlan], Workload]:
        """Return the plan of each item and the work on all of them.  Raises `Invalid`."""
        defaults = self.catalog.defaults
        known = {name: self._known[name] for name in metrics}
        plans = [
            ItemPlan(item, {name: item.options.get(name) or defaults[name] for name in metrics}, known)
            for item in items
        ]
        check_used(plans)
        return plans, workload(plans, self._known, context.lane, self._runtime.handle)

    async def _score_input(
        self,
        input: MetricInput,
        prompt: str,
        options: Mapping[str, MetricOptions],
        work: Workload,
        context: Context,
    ) -> dict[str, MetricResult]:
        """Return each metric's result for one frame or grid; all fail if an image cannot be opened."""
        work.begin_frame()
        context = context.for_one_frame()
        if asyncio.get_running_loop().time() >= context.deadline:  # while others were scored
            return dict.fromkeys(options, DeadlineExceeded(stage="queue"))
        try:
            async with (
                asyncio.timeout_at(context.deadline) as opening,
                loaded(input, prompt, self._images, context) as (item, notes),
            ):
                opening.reschedule(None)  # from here on each metric has the deadline itself
                results = await side_by_side(
                    [self.scorer.score(name, item, chosen, context) for name, chosen in options.items()]
                )
                if input.others:
                    results = [await self._located(each, input, item, context) for each in results]
                results = [each.noted(notes) if isinstance(each, Score) else each for each in results]
                return dict(zip(options, results, strict=True))
        except TimeoutError:
            return dict.fromkeys(options, DeadlineExceeded(stage="decode"))
        except (ScoregateError, ImageError) as exc:
            return dict.fromkeys(options, error_of(exc))

    async def _located(
        self, result: MetricResult, input: MetricInput, item: Item, context: Context
    ) -> MetricResult:
        """Return *result*; if a reference or source has broken pixels, an error that names it."""
        if not isinstance(result, ImageUndecodable):
            return result
        ref = await self._cpu[context.lane].run(broken, input, item)
        return result.of_part(ref.place) if ref else result
