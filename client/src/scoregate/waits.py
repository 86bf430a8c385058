"""When to ask again: pure functions of what the service said, and of chance."""

from __future__ import annotations

import random
from collections.abc import Mapping

from scoregate.errors import ConnectionFailed, ScoregateError

FIRST_S = 0.1  # before the first retry, doubled for each further one
BUSY = (429, 503)


def worth_a_retry(error: ScoregateError) -> bool:
    """Whether the same request may succeed later: nothing is wrong with it."""
    return isinstance(error, ConnectionFailed) or error.status in BUSY


def wait_s(error: ScoregateError, attempt: int) -> float:
    """
    Seconds before the next attempt, of which *attempt* were made: doubled each time, and not less than the
    service said.

    Everyone's wait is another, so that those who were refused together don't come back together.
    """
    backoff: float = FIRST_S * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
    return max(backoff, (error.retry_after_s or 0.0) * random.uniform(1.0, 1.25))


def told_s(headers: Mapping[str, str]) -> float | None:
    """The seconds of the header `Retry-After`; a date there is not read, since clocks differ."""
    value = headers.get("retry-after", "").strip()
    return float(value) if value.isascii() and value.isdigit() else None
