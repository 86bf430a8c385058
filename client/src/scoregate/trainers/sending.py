"""Requests of a reward, and their retries: a run of days survives a restart of the service."""

from __future__ import annotations

import asyncio
import random
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scoregate.aio import AsyncClient
from scoregate.errors import (
    ConnectionFailed,
    LaneFull,
    MemoryFull,
    ModelFault,
    NotReady,
    Overloaded,
    QuestionLLMFailed,
    QuotaExceeded,
    ScoregateError,
    UpstreamFailed,
)
from scoregate.notices import Notice, ScoregateWarning
from scoregate.trainers.outcomes import Outcome, Scored, concerns_some

AWAY = (ConnectionFailed, LaneFull, MemoryFull, NotReady, Overloaded, QuotaExceeded)  # until the deadline
FAULTS = (ModelFault, QuestionLLMFailed, UpstreamFailed)
MOST_FAULTS = 3  # attempts at a call that a model failed
LONGEST_S = 8.0  # between two attempts, unless the service requires more


@dataclass
class Sender:
    """
    Requests for the weighted metrics of a reward.

    Attributes:
        options: by metric.
        warned: the number of warnings by kind.
    """

    client: AsyncClient
    weights: Mapping[str, float]
    options: Mapping[str, Mapping[str, Any]]
    priority: str
    strict: bool
    warned: Counter[str] = field(default_factory=Counter)

    async def outcomes(
        self, items: Sequence[Any], deadline: float, places: asyncio.Semaphore
    ) -> list[Outcome]:
        """
        Return the outcome of each of *items*, in one request.

        If it is rejected for its size, or for items that the error names, each half is sent alone.
        """
        try:
            async with places:
                report = await self.client.score_items(
                    items,
                    list(self.weights),
                    options=self.options or None,
                    priority=self.priority,
                    timeout_s=max(0.001, deadline - asyncio.get_running_loop().time()),
                )
        except ScoregateError as error:
            if len(items) == 1 or not concerns_some(error):
                return [error] * len(items)
            half = len(items) // 2
            return [
                *await self.outcomes(items[:half], deadline, places),
                *await self.outcomes(items[half:], deadline, places),
            ]
        self._warn(report.warnings)
        return [Scored.of(result, self.weights) for result in report]

    def _warn(self, notices: Sequence[Notice]) -> None:
        """Count each warning; the first of its kind is a `ScoregateWarning`, unless it is an error."""
        for notice in notices:
            if not (self.strict or self.warned[notice.kind]):
                text = f"{notice.code}: {notice}" if notice.code else str(notice)
                warnings.warn(text, ScoregateWarning, stacklevel=2)
            self.warned[notice.kind] += 1


def passing(outcome: Any, attempt: int) -> bool:
    """Return True if *outcome*, of attempt number *attempt*, is a temporary error."""
    return isinstance(outcome, AWAY) or (isinstance(outcome, FAULTS) and attempt < MOST_FAULTS)


def pause_s(errors: Sequence[ScoregateError], attempt: int) -> float:
    """Return the wait in seconds: the service's `retry_after_s`, or doubled each time, with jitter."""
    required = max((error.retry_after_s or 0.0 for error in errors), default=0.0)
    return max(required, min(LONGEST_S, 2.0 ** (attempt - 1))) * random.uniform(1.0, 1.25)
