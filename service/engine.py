"""Metrics over items under a deadline: one coroutine per (item, metric), and what comes of each."""

import asyncio
import logging
import math
import re
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from service.context import Context
from service.errors import (
    DeadlineExceeded,
    Fault,
    ModelFault,
    NotReady,
    ScoregateError,
    UnknownMetric,
)
from service.inputs import Inputs, Parts, Source
from service.metrics import REGISTRY
from service.metrics.base import Item, Metric, Models, Score
from service.questions.writer import Questions
from service.schemas import Options, WireItem
from service.serving.handle import Handle
from service.serving.runtime import LocalRuntime
from service.settings import OWN_MODEL

log = logging.getLogger("scoregate.engine")

Outcome = Score | ScoregateError
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scored:
    """What came of one item: an outcome per metric."""

    index: int
    id: str | None
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)


class Engine:
    """
    Scores items with the runtime's models.

    Attributes:
        metrics: those whose models are all configured.
    """

    def __init__(self, runtime: LocalRuntime, questions: Questions, inputs: Inputs) -> None:
        self._runtime, self._questions, self._inputs = runtime, questions, inputs
        self.metrics: dict[str, Metric] = {
            name: metric
            for name, metric in REGISTRY.items()
            if all(runtime.handle(name, role) for role in metric.roles)
        }

    def handles(self, metrics: Sequence[str]) -> dict[str, Handle]:
        """The handles behind *metrics*, by configured name.  Raises `UnknownMetric`."""
        served = self.metrics
        unknown = [name for name in metrics if name not in served]
        if unknown:
            faults = [
                Fault(f"/metrics/{metrics.index(name)}", "unknown_metric", absent(name, served))
                for name in unknown
            ]
            raise UnknownMetric(f"{faults[0].pointer}: {faults[0].detail}", faults=faults)
        used = [
            self._runtime.handle(name, role)
            for name in metrics
            for role in (*served[name].roles, *served[name].may_use)
        ]
        return {handle.name: handle for handle in used if handle is not None}

    async def score(
        self,
        items: Sequence[WireItem],
        metrics: Sequence[str],
        options: Options,
        parts: Parts,
        context: Context,
    ) -> list[Scored]:
        """
        One entry per item, in order; what fails is an outcome, never an exception.

        Raises:
            UnknownMetric: a metric is not served here.
            LaneFull, Overloaded: a model's lane takes no more, before any work is done.
        """
        for handle in self.handles(metrics).values():
            handle.admit(context)
        return await side_by_side(
            [self._item(index, item, metrics, options, parts, context) for index, item in enumerate(items)]
        )

    async def _item(
        self,
        index: int,
        item: WireItem,
        metrics: Sequence[str],
        options: Options,
        parts: Parts,
        context: Context,
    ) -> Scored:
        frames = item.image if isinstance(item.image, list) else [item.image]
        seen = await side_by_side(
            [self._frame(frame, item.prompt, metrics, options, parts, context) for frame in frames]
        )
        outcomes = {name: mean([frame[name] for frame in seen]) for name in metrics}
        return Scored(index, item.id, outcomes)

    async def _frame(
        self,
        source: Source,
        prompt: str,
        metrics: Sequence[str],
        options: Options,
        parts: Parts,
        context: Context,
    ) -> dict[str, Outcome]:
        """Every metric of one picture; a picture that can't be opened is every metric's error."""
        try:
            async with asyncio.timeout_at(context.deadline) as opening:
                async with self._inputs.open(source, parts, context) as image:
                    opening.reschedule(None)  # from here on each metric keeps the deadline itself
                    item = Item(image, prompt)
                    outcomes = await side_by_side(
                        [self._metric(name, item, options, context) for name in metrics]
                    )
                    return dict(zip(metrics, outcomes, strict=True))
        except TimeoutError:
            return dict.fromkeys(metrics, DeadlineExceeded(stage="decode"))
        except ScoregateError as error:
            return dict.fromkeys(metrics, error)

    async def _metric(self, name: str, item: Item, options: Options, context: Context) -> Outcome:
        context = context.for_one_metric()
        try:
            async with asyncio.timeout_at(context.deadline):
                score = await REGISTRY[name].score(item, self._models(name, context), getattr(options, name))
        except TimeoutError:
            return DeadlineExceeded(stage=context.stage)
        except ScoregateError as error:
            return error
        except Exception as exc:
            log.error("metric failed", extra={"metric": name}, exc_info=exc)
            return ScoregateError()
        if not math.isfinite(score.value):
            return ModelFault("the score is not a finite number")
        return score if score.cache else replace(score, cache=context.found)

    def _models(self, metric: str, context: Context) -> Models:
        """The models of *metric* on behalf of this request."""

        def handle(role: str) -> Handle:
            found = self._runtime.handle(metric, role)
            if found is None:
                raise NotReady(f"no {role} model is configured")
            return found

        return Models(handle, self._questions, context)

    def warnings(self, prompts: Sequence[str], metrics: Sequence[str]) -> list[str]:
        """Words of the prompts that a model used here was never taught."""
        taught: dict[frozenset[str], list[str]] = {}
        for handle in self.handles(metrics).values():
            taught.setdefault(handle.info.vocabulary, []).append(handle.info.id)
        taught.pop(frozenset(), None)
        if not taught:
            return []
        words = {word for prompt in prompts for word in re.findall(r"\w+", prompt.lower())}
        notes = []
        for vocabulary, models in taught.items():
            if strange := sorted(words - vocabulary):
                shown = ", ".join(strange[:20]) + (", …" if len(strange) > 20 else "")
                notes.append(f"words that {', '.join(models)} never learnt: {shown}")
        return notes


async def side_by_side(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of *works*, in order; a single one needs no task."""
    if len(works) == 1:
        return [await works[0]]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
    return [task.result() for task in tasks]


def absent(name: str, served: Iterable[str]) -> str:
    """Why a metric is not served, and what is."""
    reason = "there is no such metric here"
    if name in OWN_MODEL:
        reason = f"{name} needs a model of its own, named by the setting metrics.{name}.model"
    return f"{reason}; this server has: {', '.join(served)}"


def mean(outcomes: Sequence[Outcome]) -> Outcome:
    """The mean over an item's frames; without every frame's score there is none."""
    scores = [outcome for outcome in outcomes if isinstance(outcome, Score)]
    if len(scores) < len(outcomes):
        return next(error for error in outcomes if isinstance(error, ScoregateError))
    if len(scores) == 1:
        return scores[0]
    details: dict[str, Any] = {"frames": [score.details for score in scores]}
    warnings = tuple(dict.fromkeys(note for score in scores for note in score.warnings))
    value = sum(score.value for score in scores) / len(scores)
    ways = {score.cache for score in scores}
    cache = next((way for way in ("miss", "coalesced", "hit") if way in ways), None)
    return Score(value, details, cache, warnings)
