"""Retries of a trainer: a run of days survives a restart of the service."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

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

AWAY = (ConnectionFailed, LaneFull, MemoryFull, NotReady, Overloaded, QuotaExceeded)  # until the deadline
FAULTS = (ModelFault, QuestionLLMFailed, UpstreamFailed)
MOST_FAULTS = 3  # attempts at a call that a model failed
LONGEST_S = 8.0  # between two attempts, unless the service requires more


def passing(outcome: Any, attempt: int) -> bool:
    """Return True if *outcome*, of attempt number *attempt*, is a temporary error."""
    return isinstance(outcome, AWAY) or (isinstance(outcome, FAULTS) and attempt < MOST_FAULTS)


def pause_s(errors: Sequence[ScoregateError], attempt: int) -> float:
    """Return the wait in seconds: the service's `retry_after_s`, or doubled each time, with jitter."""
    required = max((error.retry_after_s or 0.0 for error in errors), default=0.0)
    return max(required, min(LONGEST_S, 2.0 ** (attempt - 1))) * random.uniform(1.0, 1.25)
