"""`Retry-After`: the seconds until a rejected request may be accepted, and the value of the header."""

import math
import random
from enum import Enum
from typing import NamedTuple

from service.core.errors import ScoregateError

MIN_WAIT_S = 1.0  # the header has at least this, also if no wait was predicted
MAX_JITTER = 1.25  # largest factor on the header's wait: rejected requests return apart


class Shortage(Enum):
    """What a request lacked, with the seconds after which there is usually enough of it."""

    BYTES = 2.0  # bodies and images hold them; other requests return them when they end
    PLACES = 5.0  # requests that wait, or that run for one key, hold them
    MODEL = 10.0  # memory to load a model, or its checkpoint: the hub is away, or an operator has to act


class QueuedWork(NamedTuple):
    """Work that was admitted before: the predicted seconds until all of it is done, 0 if there is none."""

    drain_s: float


class UsedQuota(NamedTuple):
    """A bucket that lacks *missing* pairs, and gets *per_s* of them each second."""

    missing: float
    per_s: float


def expected_wait_s(cause: Shortage | QueuedWork | UsedQuota) -> float:
    """Return `retry_after_s` of the error that rejects a request for *cause*; 0 if to wait does not help."""
    match cause:
        case QueuedWork(drain_s):
            return drain_s
        case UsedQuota(missing, per_s):
            return missing / per_s
    return cause.value


def header_value(error: ScoregateError, most_s: float = math.inf) -> str:
    """
    Return the header's value for *error*: whole seconds with jitter, unless the wait is exact.

    Args:
        most_s: before the jitter.
    """
    wait_s = min(max(MIN_WAIT_S, error.retry_after_s or 0.0), most_s)
    return str(math.ceil(wait_s * (1.0 if error.exact_wait else random.uniform(1.0, MAX_JITTER))))
