"""A shadow: scores a share of a model's traffic again with another model, in the background."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from models.images.image import ImageError
from service.core.concurrency.budget import Budget
from service.core.concurrency.tasks import Tasks
from service.core.concurrency.together import side_by_side
from service.core.concurrency.turns import one_caller
from service.core.errors import REFUSALS, DeadlineExceeded, ScoregateError
from service.core.lanes import BULK
from service.images.byte_budget import ByteBudget
from service.images.loader import ImageLoader
from service.metrics.common.contract import MetricOptions, Score
from service.observability.instruments import Instruments
from service.observability.labels import SHADOW_RESULTS
from service.scoring.frames import MetricInput
from service.scoring.inputs import loaded
from service.scoring.metric_scorer import MetricScorer
from service.scoring.report import MetricResult
from service.scoring.shadows.comparison import Comparison, compare
from service.scoring.shadows.held_input import held
from service.scoring.shadows.pairs import Pairs
from service.serving.context import BackgroundContext
from service.serving.handle import Handle

log = logging.getLogger("scoregate.shadow")

AT_ONCE = 8  # inputs: enough for a batch, and few compared with the calls of requests
MAX_PENDING = 256  # inputs that wait or are scored
PART = 16  # of the memory for requests: the most that waiting inputs hold is 1 / PART
TIMEOUT_S = 60.0  # of one input, waiting included
LATE = (*REFUSALS, DeadlineExceeded)

Options = Mapping[str, MetricOptions]
Results = Mapping[str, MetricResult]


class Shadow:
    """
    One model that shadows another one.

    Args:
        revision: by which *shadow* was chosen.
        temporary: *shadow* was loaded for this, and is freed afterwards.
        scorer: of the callers' requests; here *shadow* takes the place of *served* in it.
        metrics: names of the metrics that use *served*.
        memory: the budget of all requests.

    Attributes:
        share: of the inputs, above 0 and at most 1.
        pairs: by metric.
        counts: results of the shadow by kind: "ok", "dropped" or "failed".
    """

    def __init__(
        self,
        served: Handle,
        shadow: Handle,
        share: float,
        *,
        revision: str,
        temporary: bool,
        scorer: MetricScorer,
        metrics: Sequence[str],
        images: ImageLoader,
        memory: ByteBudget,
        instruments: Instruments,
    ) -> None:
        self.served, self.shadow, self.share = served, shadow, share
        self.revision, self._temporary, self._freed = revision, temporary, False
        self._scorer = replace(scorer, handle=instead(scorer.handle, served, shadow))
        self._images, self._memory, self._instruments = images, memory, instruments
        self._identities = served.info.identity, shadow.info.identity
        self._tasks, self._slots = Tasks(), Budget(AT_ONCE)
        self._inputs = 0.0
        self._held = 0
        self.pairs = {name: Pairs() for name in metrics}
        self.counts = dict.fromkeys(SHADOW_RESULTS, 0)
        self.pending = 0

    @property
    def outdated(self) -> bool:
        """True if one of the models was replaced or freed since the start: no more pairs are added."""
        return self._freed or self._identities != (self.served.info.identity, self.shadow.info.identity)

    def comparison(self, metric: str, thresholds: Sequence[float] = ()) -> Comparison:
        """Compare the models by one metric, see `compare`."""
        lower = self._scorer.catalog.configured[metric].lower_is_better
        return compare(self.pairs[metric], thresholds, lower_is_better=lower)

    async def aclose(self) -> None:
        """Drop what waits or is scored, and free a model that was loaded for it."""
        temporary, self._temporary = self._temporary, False
        if temporary:
            await self.shadow.aclose()  # first: until then calls without a caller are kept for a while
        await self._tasks.cancel()
        if temporary:
            await self.shadow.backend.discard()

    async def free(self) -> None:
        """Free a model that was loaded for this, and keep the pairs."""
        if self._temporary:
            self._freed = True
            await self.aclose()

    def take(self, input: MetricInput, prompt: str, options: Options, results: Results) -> None:
        """
        Score *input* again in the background, if it is in the share and was scored by a metric of the model.

        The images of *input* must be open.
        """
        scored = {
            name: result.value
            for name, result in results.items()
            if name in self.pairs and isinstance(result, Score)
        }
        if not scored or self.outdated or not self._is_next():
            return
        copy, size = held(input)
        if self.pending >= MAX_PENDING or self._held + size > self._memory.total // PART:
            self._count("dropped", len(scored))
            return
        deadline = asyncio.get_running_loop().time() + TIMEOUT_S
        self._tasks.start(self._score(copy, size, prompt, options, scored, deadline))

    def _is_next(self) -> bool:
        """Return True for the share of the inputs, spread evenly."""
        before = int(self._inputs * self.share)
        self._inputs += 1
        return int(self._inputs * self.share) > before

    async def _score(
        self,
        input: MetricInput,
        size: int,
        prompt: str,
        options: Options,
        scored: Mapping[str, float],
        deadline: float,
    ) -> None:
        """Score one input, and add the pairs."""
        self.pending, self._held = self.pending + 1, self._held + size
        results: Results = {}
        try:
            with one_caller(self), self._memory.share() as share:
                share.grow(size)
                context = BackgroundContext("", deadline, BULK, self._instruments)
                chosen = {name: options[name] for name in scored}
                async with asyncio.timeout_at(deadline), self._slots.hold(1):
                    results = await self._rescored(input, prompt, chosen, context)
        except (TimeoutError, ScoregateError, ImageError):
            self._count("dropped", len(scored))
        except Exception as exc:
            self._count("failed", len(scored))
            log.error("shadow failed", extra={"model": self.served.name}, exc_info=exc)
        finally:
            self.pending, self._held = self.pending - 1, self._held - size
        for name, result in results.items():
            self._add(name, scored[name], result)

    async def _rescored(
        self, input: MetricInput, prompt: str, options: Options, context: BackgroundContext
    ) -> Results:
        async with loaded(input, prompt, self._images, context) as (item, _):
            results = await side_by_side(
                [self._scorer.score(name, item, chosen, context) for name, chosen in options.items()]
            )
        return dict(zip(options, results, strict=True))

    def _add(self, name: str, served: float, result: MetricResult) -> None:
        if isinstance(result, LATE) or self.outdated:
            self._count("dropped")
        elif isinstance(result, Score):
            self.pairs[name].add(served, result.value)
            self._count("ok")
        else:
            self._count("failed")

    def _count(self, kind: str, scores: int = 1) -> None:
        self.counts[kind] += scores
        self._instruments.shadow_scores.labels(self.served.name, kind).inc(scores)


def instead(
    handle: Callable[[str, str], Handle | None], served: Handle, shadow: Handle
) -> Callable[[str, str], Handle | None]:
    """Return *handle* with *shadow* wherever it returns *served*."""

    def of(metric: str, role: str) -> Handle | None:
        found = handle(metric, role)
        return shadow if found is served else found

    return of
