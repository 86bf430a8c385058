"""What came of requests, and the figures made of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

REFUSED = (429, 503)


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    One request: times in seconds from the start of the run.

    Attributes:
        due_s: when it was to be sent; latency counts from here.
        scored: items that got a score.
        status: of the answer; 0 where there was none.
        failure: the error's code, or what became of the connection; empty where all went well.
        retry_after_s: what a refusal said.
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
        """From when it was due."""
        return self.done_s - self.due_s

    @property
    def kind(self) -> str:
        """ok, refused, timeout or error; never two of them."""
        if self.status == 200 and self.scored == self.items:
            return "ok"
        if self.status in REFUSED:
            return "refused"
        return "timeout" if self.failure in ("timeout", "deadline_exceeded") else "error"


def count(outcomes: Sequence[Outcome], kind: str) -> int:
    """How many are of *kind*."""
    return sum(outcome.kind == kind for outcome in outcomes)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least *share* of all don't exceed (nearest rank)."""
    if not values:
        raise ValueError("no values")
    return sorted(values)[max(1, ceil(share * len(values))) - 1]


def latencies(outcomes: Sequence[Outcome], lane: str | None = None) -> list[float]:
    """Of all requests in *lane*; one that failed counts as never answered."""
    of_lane = (outcome for outcome in outcomes if lane in (None, outcome.lane))
    return [outcome.latency_s if outcome.kind == "ok" else float("inf") for outcome in of_lane]


def throughput(outcomes: Sequence[Outcome]) -> float:
    """Items scored a second, from the first request due to the last answer."""
    begin, end = min(o.due_s for o in outcomes), max(o.done_s for o in outcomes)
    return sum(outcome.scored for outcome in outcomes) / (end - begin)


def goodput(outcomes: Sequence[Outcome], within_s: float, seconds: float) -> float:
    """Items a second of requests answered in time, over the *seconds* in which they came."""
    good = (o.items for o in outcomes if o.kind == "ok" and o.latency_s <= within_s)
    return sum(good) / seconds


def lateness(outcomes: Sequence[Outcome]) -> float:
    """How late the generator itself was, p99 in seconds: a late one measures its own queue."""
    return percentile([outcome.sent_s - outcome.due_s for outcome in outcomes], 0.99)


def drain_ratios(outcomes: Sequence[Outcome], least_s: float) -> list[float]:
    """
    What refusals predicted, over the time in which the queue they met really drained.

    The queue of a refusal are the requests sent before it and accepted; it has drained when the last of
    them is answered.  Only predictions of at least *least_s*.
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
