"""One metric of one input: a score within the deadline, or an error."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from models.images.image import ImageError
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.tasks import side_by_side
from service.core.errors import DeadlineExceeded, ModelFault, ScoregateError, bare
from service.metrics.common.contract import Item, MetricOptions, Score
from service.metrics.common.model_calls import Models
from service.observability.notes import Code, Note
from service.questions.writer import QuestionWriter
from service.scoring.catalog import MetricCatalog
from service.scoring.report import MetricResult
from service.serving.backends.prepare import not_decoded
from service.serving.context import Context
from service.serving.handle import Handle

log = logging.getLogger("scoregate.engine")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MetricScorer:
    """
    Scores opened images by one metric.

    Attributes:
        handle: returns the model of a metric in a role, or None.
        cpu: the CPU threads of each lane, for metrics without a model.
    """

    catalog: MetricCatalog
    handle: Callable[[str, str], Handle | None]
    writer: QuestionWriter
    cpu: Mapping[str, FairThreads]

    async def score(self, name: str, item: Item, options: MetricOptions, context: Context) -> MetricResult:
        """Return the result of one metric within the deadline."""
        with context.span.child("metric", metric=name) as span:
            context = context.for_one_metric(span)
            limit = asyncio.timeout_at(context.deadline)
            try:
                async with limit:
                    score = checked(name, await self._call(name, item, options, context), options, context)
                    return score.noted(unknown_tokens(context.unknown))
            except Exception as exc:
                late = isinstance(exc, TimeoutError) and limit.expired()
                error = DeadlineExceeded(stage=context.stage) if late else error_of(exc, name)
                span.note(error=error.code)
                return error

    def _call(self, name: str, item: Item, options: MetricOptions, context: Context) -> Awaitable[Any]:
        """Call a metric; one without a model runs on a CPU thread, since it would block the event loop."""
        metric = self.catalog.configured[name]
        parts = partial(self._score_parts, context)
        style = metric.style_with(options) if metric.style else None
        models = Models(partial(self.handle, metric.name), self.writer, context, parts, style)
        score = metric.score(item, models, options)
        if not metric.computes:
            return score
        context.stage = "decode"
        return self.cpu[context.lane].run(run_to_end, score)

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


def checked(name: str, score: Any, options: MetricOptions, context: Context) -> Score:
    """
    Return the score of a metric, with its cache status and a warning for each option without effect.

    Raises `TypeError` or `ModelFault`.
    """
    if not isinstance(score, Score):
        raise TypeError(f"{name} returned a {type(score).__name__}, not a Score")
    if not math.isfinite(score.value):
        raise ModelFault("the score is not a finite number")
    noted = score.noted(options.unused())
    return noted if noted.cache else replace(noted, cache=context.found)


def unknown_tokens(shares: Sequence[float]) -> tuple[Note, ...]:
    """Return the warning about texts with unknown tokens of a model, with the largest share."""
    if not shares:
        return ()
    text = f"{max(shares):.0%} of the tokens of a text are unknown to the model, which reads them all as one"
    return (Note(Code.UNKNOWN_TOKENS, text, round(max(shares), 4)),)


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
