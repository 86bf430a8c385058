"""Metrics over items under a deadline: one coroutine per (item, metric), and what comes of each."""

import asyncio
import logging
import math
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, TypeVar

from models.image import ImageError
from service.context import Context, Found
from service.errors import (
    DeadlineExceeded,
    ImageUndecodable,
    ModelFault,
    NotReady,
    ScoregateError,
    UnknownMetric,
)
from service.folding import mean
from service.items import Picture, Pictures, UnopenedItem
from service.metrics.contract import Item, Metric, MetricOptions, Score
from service.metrics.models import Models
from service.questions.sets import QuestionSet
from service.questions.style import Style
from service.questions.writer import QuestionWriter
from service.report import ItemReport, Outcome, Report, warnings
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

    Attributes:
        metrics: those whose models are all configured, by name.
    """

    def __init__(
        self,
        known: Mapping[str, Metric],
        runtime: Runtime,
        writer: QuestionWriter,
        pictures: Pictures,
        cpu: Mapping[str, Executor],
    ) -> None:
        self._known, self._runtime, self._writer = known, runtime, writer
        self._pictures, self._cpu = pictures, cpu
        self.metrics: dict[str, Metric] = {
            name: metric
            for name, metric in known.items()
            if all(runtime.handle(name, role) for role in metric.roles)
        }

    def absent(self, name: str) -> str:
        """Why the metric *name* is not served, and what is; empty where it is served."""
        if name in self.metrics:
            return ""
        reason = "there is no such metric here"
        if name in self._known:
            roles = ", ".join(self._known[name].roles)
            reason = f"{name} is not served, since no model is configured for its roles: {roles}"
            if self._known[name].own_model:
                reason = f"{name} needs a model of its own, named by the setting metrics.{name}.model"
        return f"{reason}; this server has: {', '.join(self.metrics)}"

    def handles(self, metrics: Sequence[str]) -> dict[str, Handle]:
        """The handles of the models that *metrics* may ask, by configured name.  Raises `UnknownMetric`."""
        for name in metrics:
            if reason := self.absent(name):
                raise UnknownMetric(reason)
        used = [self._runtime.handle(name, role) for name in metrics for role in self.metrics[name].all_roles]
        return {handle.name: handle for handle in used if handle is not None}

    async def score(
        self,
        items: Sequence[UnopenedItem],
        metrics: Sequence[str],
        options: Mapping[str, MetricOptions],
        context: Context,
    ) -> Report:
        """
        A report with one entry per item, in order; what fails is an outcome, never an exception.

        Args:
            options: by metric; a metric that is left out has its defaults.

        Raises:
            UnknownMetric: a metric is not served here.
            LaneFull, Overloaded: a model's lane takes no more, before any work is done.
        """
        handles = self.handles(metrics)
        for handle in handles.values():
            handle.admit(context)
        chosen = {name: options.get(name) or self.metrics[name].options() for name in metrics}
        scored = await side_by_side([self._item(item, chosen, context) for item in items])
        labels = {name: handle.info.label for name, handle in handles.items()}
        return Report(scored, labels, warnings(scored, [handle.info for handle in handles.values()]))

    def style(self, name: str) -> tuple[Style, Handle]:
        """The question style of that name and the LLM that writes it.  Raises `NotReady` without one."""
        for metric in self._known.values():
            llm = self._runtime.handle(metric.name, "questions")
            if llm and metric.style and metric.style.name == name:
                return metric.style, llm
        raise NotReady("no question LLM is configured")

    async def question_sets(
        self, prompts: Sequence[str], style: Style, llm: Handle, context: Context
    ) -> list[tuple[QuestionSet, Found] | ScoregateError]:
        """For each prompt, in order, its set and how it was found, or the error that took its place."""
        return await side_by_side([self._question_set(prompt, style, llm, context) for prompt in prompts])

    async def _question_set(
        self, prompt: str, style: Style, llm: Handle, context: Context
    ) -> tuple[QuestionSet, Found] | ScoregateError:
        try:
            async with asyncio.timeout_at(context.deadline):
                return await self._writer.of(prompt, style, llm, context)
        except TimeoutError:
            return DeadlineExceeded()
        except ScoregateError as error:
            return error

    async def _item(
        self, item: UnopenedItem, options: Mapping[str, MetricOptions], context: Context
    ) -> ItemReport:
        frames = await side_by_side(
            [self._frame(picture, item.prompt, options, context) for picture in item.frames]
        )
        return ItemReport(item, {name: mean([frame[name] for frame in frames]) for name in options})

    async def _frame(
        self, picture: Picture, prompt: str, options: Mapping[str, MetricOptions], context: Context
    ) -> dict[str, Outcome]:
        """Every metric of one picture; a picture that can't be opened is every metric's error."""
        try:
            async with asyncio.timeout_at(context.deadline) as opening:
                async with picture.held(self._pictures, context) as image:
                    opening.reschedule(None)  # from here on each metric keeps the deadline itself
                    item = Item(image, prompt)
                    outcomes = await side_by_side(
                        [self._metric(name, item, chosen, context) for name, chosen in options.items()]
                    )
                    return dict(zip(options, outcomes, strict=True))
        except TimeoutError:
            return dict.fromkeys(options, DeadlineExceeded(stage="decode"))
        except ScoregateError as error:
            return dict.fromkeys(options, error)

    async def _metric(self, name: str, item: Item, options: MetricOptions, context: Context) -> Outcome:
        context = context.for_one_metric()
        try:
            async with asyncio.timeout_at(context.deadline):
                score = await self._scored(self.metrics[name], item, options, context)
            if not isinstance(score, Score):
                raise TypeError(f"{name} gave a {type(score).__name__} and not a Score")
        except TimeoutError:
            return DeadlineExceeded(stage=context.stage)
        except ScoregateError as error:
            return error
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
        if metric.all_roles:
            return await work
        # It asks no model: whatever takes its time is computed, and must not keep the event loop from others.
        context.stage = "decode"
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._cpu[context.lane], run_to_end, work)

    def _models(self, metric: str, context: Context) -> Models:
        """The models of *metric* on behalf of this request."""

        def handle(role: str) -> Handle:
            found = self._runtime.handle(metric, role)
            if found is None:
                raise NotReady(f"no {role} model is configured")
            return found

        return Models(handle, self._writer, context)


async def side_by_side(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of *works*, in order; a single one needs no task."""
    if len(works) == 1:
        return [await works[0]]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
    return [task.result() for task in tasks]


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that awaits nothing.  Raises `RuntimeError` where it does."""
    try:
        work.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    work.close()
    raise RuntimeError("a metric without roles awaits something")
