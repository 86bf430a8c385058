"""Errors in forms that the clients of trainers can handle."""

import math
import random
from collections.abc import Iterable, Mapping

from service.core.errors import ScoregateError
from service.scoring.report import MetricResult, most_telling
from service.web.problems import headers_of

MOST_WAIT_S = 30.0
TEMPORARY = {408, 429, 502, 503, 504}
UNAVAILABLE = 503


def is_temporary(outcome: MetricResult) -> bool:
    """Return True if the same request may succeed later."""
    return isinstance(outcome, ScoregateError) and outcome.status in TEMPORARY


def answer_to(error: ScoregateError) -> tuple[int, dict[str, str]]:
    """
    Return the status and the headers of the response to *error*.

    Temporary failures return 503 with `Retry-After`.  Clients with urllib3's retries then wait and go on; a
    bare 503, a 429, a 502 or a 504 ends them.  No other error has that header, or they would retry forever.
    """
    if not is_temporary(error):
        return error.status, headers_of(error)
    wait = min(max(1.0, error.retry_after_s or 0.0), MOST_WAIT_S)
    return UNAVAILABLE, {"Retry-After": str(math.ceil(wait * random.uniform(1.0, 1.25)))}


def raise_most_telling(outcomes: Iterable[tuple[str, Mapping[str, MetricResult]]]) -> None:
    """Raise the most important error of a request, if there is one; *outcomes* are named by place."""
    errors = [
        outcome.of_part(place)
        for place, found in outcomes
        for outcome in found.values()
        if isinstance(outcome, ScoregateError)
    ]
    if errors:
        raise most_telling(errors)
