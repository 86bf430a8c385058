"""The closed sets of label values of Prometheus metrics, and the buckets of histograms."""

from service.core import errors

STAGES = ("receive", "decode", "prepare", "questions", "queue", "model")
OTHER = "other"  # the route of requests that match none
# 499: the caller disconnected first.
STATUSES = (200, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 499, 500, 502, 503, 504)
CODES = tuple(map(str, STATUSES))
NO_LANE = "none"  # of requests that call no model, or were refused before their lane was read
RESULTS = ("ok", "error", "cancelled")
SCORE_RESULTS = ("ok", "invalid", "refused", "late", "error")
CACHES = ("questions", "scores")
REJECTIONS = (
    "lane_full",
    "memory_full",
    "overloaded",
    "draining",
    "not_ready",
    "unauthorized",
    "forbidden",
    "quota_exceeded",
    "larger_than_quota",
    "too_large",
)

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120)
STAGE_SECONDS = (0.0005, 0.001, 0.0025, *SECONDS)
WAIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
BATCH_SECONDS = (0.002, *WAIT_SECONDS[2:12])


def result_of(error: errors.ScoregateError) -> str:
    """Return the result label of a failed score, one of `SCORE_RESULTS`."""
    if error.status == 504:
        return "late"
    if error.status in (429, 503):
        return "refused"
    return "invalid" if error.status < 500 else "error"
