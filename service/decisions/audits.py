"""Audits: a share of the items gets every metric of its policies, whatever their decisions needed."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from models.core.contract import ModelInfo
from service.core.concurrency.tasks import Tasks
from service.core.errors import Overloaded
from service.core.lanes import BULK
from service.decisions.log import DecisionLog
from service.decisions.schema import AuditRecord
from service.images.loader import size_of
from service.scoring.decide import Candidates, Decided, images_of, is_fetched, only_used
from service.scoring.engine import Engine, error_of
from service.scoring.plan import UnopenedItem
from service.scoring.policies import together
from service.serving.admission import WaitingRoom
from service.serving.context import Account, Context, RequestRecord

MAX_BYTES = 256 * 2**20  # bytes of the pictures of all audits that have not ended
LIMIT_S = 120.0  # one audit may take so long, its wait for a full lane included
CALLER = "scoregate: audits"  # audits take turns as this caller; no key has its name

Scores = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Audit:
    """
    What is computed of one item after its decisions.

    Attributes:
        item: with the bytes of its pictures.
        scores: those that its decisions had.
        missing: the other metrics of its policies.
        metrics: those of each policy, by the id of its decision.
    """

    item: UnopenedItem
    scores: Scores
    missing: Sequence[str]
    metrics: Mapping[str, Sequence[str]]

    @property
    def size(self) -> int:
        """Bytes of its pictures."""
        return sum(size_of(ref.source) for ref in images_of(self.item))


class Audits:
    """
    Chooses items by chance before anything of them is decided, and completes their scores after the answer.

    Audits are work of the bulk lane, charge no quota and wait for a full lane.  Those whose pictures do not
    fit into the memory are dropped, as are all that have not ended at the shut-down.

    Args:
        share: of the items, from 0 to 1.
        count: is called with `complete`, `failed` or `dropped` once for each item.
        chance: returns a number from 0 to 1, below 1.
    """

    def __init__(
        self,
        engine: Engine,
        log: DecisionLog,
        share: float,
        count: Callable[[str], object],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._engine, self._log, self._share = engine, log, share
        self._count, self._chance = count, chance
        self._room, self._tasks = WaitingRoom(MAX_BYTES), Tasks()

    def chosen(self, items: int) -> frozenset[int]:
        """Return the indices of those of so many items that are audited."""
        return frozenset(index for index in range(items) if self._chance() < self._share)

    def start(self, made: Decided, candidates: Candidates, context: Context) -> None:
        """Start the audits of the chosen items of an answered request; raise nothing."""
        names = together(candidates.policies)
        for index, item in made.audited.items():
            scores = {name: each.value for name, each in made.report.items[index].scores.items()}
            metrics = {
                made.decisions[index][policy.name].id: policy.rules.metrics for policy in candidates.policies
            }
            missing = [name for name in names if name not in scores]
            self._start(Audit(item, scores, missing, metrics), made.report.infos, context)

    async def aclose(self) -> None:
        """Drop the audits that have not ended."""
        await self._tasks.cancel()

    def _start(self, audit: Audit, models: Mapping[str, ModelInfo], context: Context) -> None:
        """Start an audit, or drop it; a score of another model than those of its row would be an error."""
        held = ExitStack()
        place = held.enter_context(self._room.place(audit.size, 1))
        try:
            place.take()
        except Overloaded:
            self._count("dropped")
            return
        context = Context(
            context.request_id,
            asyncio.get_running_loop().time() + LIMIT_S,
            BULK,
            context.instruments,
            account=Account(CALLER),
            place=place,
            request=RequestRecord({**models}),
        )
        task = self._tasks.start(self._scored(audit, context))
        task.add_done_callback(partial(self._end, audit, held))

    async def _scored(self, audit: Audit, context: Context) -> Scores:
        """Return all scores of an item; without those of metrics that failed."""
        if not audit.missing or is_fetched(audit.item):  # the address may serve another picture by now
            return audit.scores
        item = only_used(audit.item, audit.missing, self._engine.catalog)
        try:
            report = await self._engine.score_once([item], audit.missing, context, counted=False)
        except Exception as exc:  # `error_of` logs it if it is no known error
            error_of(exc, audit.missing[0])
            return audit.scores
        return {**audit.scores, **{name: each.value for name, each in report.items[0].scores.items()}}

    def _end(self, audit: Audit, held: ExitStack, task: "asyncio.Task[Scores]") -> None:
        """Release the pictures, and log the audit's result with each decision about the item."""
        held.close()
        if task.cancelled():
            self._count("dropped")
            return
        scores = task.result()
        self._count("complete" if scores.keys() >= {*audit.missing} else "failed")
        self._log.end_audits(
            [
                AuditRecord(
                    id,
                    "complete" if scores.keys() >= {*names} else "failed",
                    {name: scores[name] for name in names if name in scores},
                )
                for id, names in audit.metrics.items()
            ]
        )
