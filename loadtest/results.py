"""Outcomes of requests, and figures computed from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

REFUSED = (429, 503)


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    Outcome of one request; times are in seconds from the start of the run.

    Attributes:
        due_s: when it was to be sent; latency counts from here.
        scored: items with a score.
        status: of the response; 0 without one.
        failure: the error's code, or the connection's exception; empty on success.
        retry_after_s: from a refusal.
    """

    due_s: float
    sent_s: float
    done_s: float
    lane: str
    items: int
    scored: int
    status: int
    failure: str = ""
    retry_after_s: float | None = None

    @property
    def latency_s(self) -> float:
        """Seconds from the time that it was due."""
        return self.done_s - self.due_s

    @property
    def kind(self) -> str:
        """Exactly one of ok, refused, timeout or error."""
        if self.status == 200 and self.scored == self.items:
            return "ok"
        if self.status in REFUSED:
            return "refused"
        return "timeout" if self.failure in ("timeout", "deadline_exceeded") else "error"


def count(outcomes: Sequence[Outcome], kind: str) -> int:
    """Return the number of outcomes of *kind*."""
    return sum(outcome.kind == kind for outcome in outcomes)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least *share* of all don't exceed (nearest rank)."""
    if not values:
        raise ValueError("no values")
    return sorted(values)[max(1, ceil(share * len(values))) - 1]


def latencies(outcomes: Sequence[Outcome], lane: str | None = None) -> list[float]:
    """Return the latencies of requests in *lane*; infinite for failed ones."""
    of_lane = (outcome for outcome in outcomes if lane in (None, outcome.lane))
    return [outcome.latency_s if outcome.kind == "ok" else float("inf") for outcome in of_lane]


def throughput(outcomes: Sequence[Outcome]) -> float:
    """Return items scored a second, from the first request due to the last response."""
    begin, end = min(o.due_s for o in outcomes), max(o.done_s for o in outcomes)
    return sum(outcome.scored for outcome in outcomes) / (end - begin)


def goodput(outcomes: Sequence[Outcome], within_s: float, seconds: float) -> float:
    """Return items a second of requests answered in time, over the *seconds* of arrivals."""
    good = (o.items for o in outcomes if o.kind == "ok" and o.latency_s <= within_s)
    return sum(good) / seconds


def lateness(outcomes: Sequence[Outcome]) -> float:
    """Return the p99 delay of the generator in seconds: a late one measures its own queue."""
    return percentile([outcome.sent_s - outcome.due_s for outcome in outcomes], 0.99)


def drain_ratios(outcomes: Sequence[Outcome], least_s: float) -> list[float]:
    """
    Return the ratios of predicted (Retry-After) to actual drain time of the queue.

    A refusal's queue is the requests sent before it and accepted; it has drained when the last of
    them is answered.  Predictions below *least_s* are ignored.
    """
    accepted = sorted((o.sent_s, o.done_s) for o in outcomes if o.status == 200)
    ratios = []
    for refusal in outcomes:
        if refusal.kind != "refused" or not refusal.retry_after_s or refusal.retry_after_s < least_s:
            continue
        met = [done for sent, done in accepted if sent < refusal.sent_s and done > refusal.done_s]
        if met:
            ratios.append(refusal.retry_after_s / (max(met) - refusal.done_s))
    return ratios
