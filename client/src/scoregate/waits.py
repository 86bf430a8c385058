"""Waits before retries."""

from __future__ import annotations

import random
from collections.abc import Mapping

from scoregate.errors import ConnectionFailed, ScoregateError

FIRST_S = 0.1  # before the first retry, doubled for each further one
BUSY = (429, 503)


def worth_a_retry(error: ScoregateError) -> bool:
    """Return True if the same request may succeed later."""
    return isinstance(error, ConnectionFailed) or error.status in BUSY


def wait_s(error: ScoregateError, attempt: int) -> float:
    """
    Return the seconds before the next attempt: doubled each time, and at least `Retry-After`.

    Randomized, so that callers that were rejected together do not retry together.
    """
    backoff: float = FIRST_S * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
    return max(backoff, (error.retry_after_s or 0.0) * random.uniform(1.0, 1.25))


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of the header `Retry-After`; dates are ignored, since clocks differ."""
    value = headers.get("retry-after", "").strip()
    return float(value) if value.isascii() and value.isdigit() else None
