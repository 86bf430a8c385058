"""Requests of a reward, and their retries: a run of days survives a restart of the service."""

from __future__ import annotations

import asyncio
import random
import warnings
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from scoregate.aio import AsyncClient
from scoregate.errors import (
    CLIENT_CLOSED,
    LaneFullError,
    MemoryFullError,
    ModelFaultError,
    NotReadyError,
    OverloadedError,
    QuestionLLMFailedError,
    QuotaExceededError,
    ScoregateError,
    ServiceConnectionError,
    ServiceTimeoutError,
    UpstreamFailedError,
)
from scoregate.items import Item, Pairing
from scoregate.results import Notice, Result, ScoregateWarning
from scoregate.trainers.groups import win_rates
from scoregate.trainers.outcomes import Scored, ScoredOrError, WeightedSum, concerns_some

AWAY_ERRORS = (
    ServiceConnectionError,
    LaneFullError,
    MemoryFullError,
    NotReadyError,
    OverloadedError,
    QuotaExceededError,
)  # these are retried until the deadline
MODEL_FAULTS = (ModelFaultError, QuestionLLMFailedError, UpstreamFailedError)
MAX_FAULTS = 3  # attempts at a call that a model failed
MAX_PAUSE_S = 8.0  # seconds between two attempts, unless the service requires more

Send = Callable[
    [Sequence[Item], Sequence[WeightedSum], float, asyncio.Semaphore],
    Coroutine[Any, Any, list[ScoredOrError]],
]


@dataclass
class Sender:
    """
    Requests for the metrics of a reward.

    Attributes:
        metrics: of items without metrics of their own.
        options: by metric.
        warned: the number of warnings by kind.
    """

    client: AsyncClient
    metrics: Sequence[str]
    options: Mapping[str, Mapping[str, Any]]
    priority: str
    strict: bool
    warned: Counter[str] = field(default_factory=Counter)

    async def outcomes(
        self,
        items: Sequence[Item],
        sums: Sequence[WeightedSum],
        deadline: float,
        places: asyncio.Semaphore,
    ) -> list[ScoredOrError]:
        """
        Return the outcome of each of *items* by its weighted sum, in one request.

        If it is rejected for its size, or for items that the error names, each half is sent alone.
        """
        try:
            async with places:
                report = await self.client.score_items(
                    items,
                    self.metrics,
                    options=self.options or None,
                    priority=self.priority,
                    timeout_s=max(0.001, deadline - self.client.transport.time()),
                )
        except ScoregateError as error:
            if len(items) == 1 or not concerns_some(error):
                return [error] * len(items)
            half = len(items) // 2
            return [
                *await self.outcomes(items[:half], sums[:half], deadline, places),
                *await self.outcomes(items[half:], sums[half:], deadline, places),
            ]
        return self._outcomes(report, sums, report.warnings)

    async def compared(
        self,
        items: Sequence[Item],
        sums: Sequence[WeightedSum],
        deadline: float,
        places: asyncio.Semaphore,
        pairs: Pairing,
    ) -> list[ScoredOrError]:
        """Return the outcome of each of *items*, a group with equal sums, from its win rates."""
        async with places:
            results, notices = await win_rates(
                self.client,
                items,
                list(sums[0].weights),
                self.options,
                priority=self.priority,
                timeout_s=max(0.001, deadline - self.client.transport.time()),
                pairs=pairs,
            )
        outcomes = self._outcomes(results, sums, notices)
        for one in outcomes:
            if isinstance(one, Scored):
                one.of_group = True
        return outcomes

    def _outcomes(
        self, results: Sequence[Result], sums: Sequence[WeightedSum], notices: Sequence[Notice]
    ) -> list[ScoredOrError]:
        """Return the outcome of each result, after its warnings were counted."""
        for notice in notices:  # `strict` has made them errors already
            text = f"{notice.code}: {notice}" if notice.code else str(notice)
            self._count(notice.kind, text, warn=not self.strict)
        outcomes = [each.of(result) for each, result in zip(sums, results, strict=True)]
        for metric, why in chain.from_iterable(left_out(one).items() for one in outcomes):
            self._count(f"left out: {metric}", f"a reward without {metric}: {why.code}: {why.detail}")
        return outcomes

    def _count(self, kind: str, text: str, *, warn: bool = True) -> None:
        """Count a warning; the first of its kind is a `ScoregateWarning`."""
        if warn and not self.warned[kind]:
            warnings.warn(text, ScoregateWarning, stacklevel=2)
        self.warned[kind] += 1


def left_out(outcome: ScoredOrError) -> Mapping[str, ScoregateError]:
    """Return the errors of the metrics that a reward lacks."""
    return outcome.left_out if isinstance(outcome, Scored) else {}


def better(before: Any, outcome: ScoredOrError) -> ScoredOrError:
    """
    Return which of two outcomes of an item to keep; *before* is the item itself the first time.

    A reward without some part stays if the next attempt fails, and so does the error before a
    `ServiceTimeoutError`.
    """
    stays = isinstance(before, Scored) or (
        isinstance(outcome, ServiceTimeoutError) and isinstance(before, ScoregateError)
    )
    return before if stays and isinstance(outcome, ScoregateError) else outcome


def passing(outcome: Any, attempt: int) -> list[ScoregateError]:
    """Return the temporary errors for which *outcome*, of attempt number *attempt*, is tried again."""
    if isinstance(outcome, Scored):  # it waits for no part that is away
        errors, kinds = list(outcome.left_out.values()), (*AWAY_ERRORS, *MODEL_FAULTS)
        return [each for each in errors if isinstance(each, kinds) and attempt < MAX_FAULTS]
    if isinstance(outcome, ScoregateError) and outcome.code == CLIENT_CLOSED:
        return []
    again = isinstance(outcome, AWAY_ERRORS) or (isinstance(outcome, MODEL_FAULTS) and attempt < MAX_FAULTS)
    return [outcome] if again else []


def pause_s(errors: Sequence[ScoregateError], attempt: int) -> float:
    """Return the wait in seconds: the service's `retry_after_s`, or doubled each time, with jitter."""
    required = max((error.retry_after_s or 0.0 for error in errors), default=0.0)
    return max(required, min(MAX_PAUSE_S, 2.0 ** (attempt - 1))) * random.uniform(1.0, 1.25)
