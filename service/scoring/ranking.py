"""The order of pictures that are ranked, and which of them are accepted: pure, from outcomes to places."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from service.core.errors import REFUSALS, DeadlineExceeded, Fault, ImageFailed, ScoregateError
from service.metrics.common.contract import Score
from service.scoring.report import MetricResult, Report, most_telling

Outcomes = Mapping[
    str, MetricResult
]  # of one picture, by metric; none under a metric that it was not shown to


@dataclass(frozen=True, slots=True)
class Cascade:
    """A cheap metric that orders all pictures, and how many of the best go on."""

    metric: str
    keep: int


@dataclass(frozen=True, slots=True)
class Rule:
    """
    How pictures are ranked.

    Attributes:
        top_k: how many may be accepted at most; None for all.
        threshold: the worst score by *metric* that is accepted; None for any.
        on_error: what a picture that failed means: no answer at all, or it is accepted, or not.
        on_deadline: what comes of pictures that *metric* has not scored in time: no answer at all, or they
            stand behind those that it has, ordered by the cascade's metric.
        lower: those of the metrics whose lower scores are the better ones.
    """

    metric: str
    cascade: Cascade | None = None
    top_k: int | None = None
    threshold: float | None = None
    on_error: Literal["raise", "pass", "block"] = "raise"
    on_deadline: Literal["fail", "cheap"] = "fail"
    lower: Collection[str] = ()

    def merit(self, metric: str, score: float) -> float:
        """A number that is the larger, the better a *score* by *metric* is."""
        return -score if metric in self.lower else score


@dataclass(frozen=True, slots=True)
class RankedItem:
    """
    Where one picture stands.

    Attributes:
        index: the picture's, in the request.
        decided_by: the metric that put it there, and gave its score; None for one that failed.
        failed: the metric that it failed under, and how; None for one that has a score.
    """

    index: int
    accepted: bool
    decided_by: str | None = None
    failed: tuple[str, ScoregateError] | None = None


def ranking(outcomes: Sequence[Outcomes], rule: Rule) -> list[RankedItem]:
    """
    The places of pictures, best first.

    First come those that the metric has scored, then those that it came too late for and those that were
    cut, ordered by the cascade's metric.  Pictures that failed are last, by index.
    """
    failed = {index: fault for index, each in enumerate(outcomes) if (fault := fault_of(each, rule))}
    scored = best(outcomes, rule.metric, rule, without=failed)
    others = best(outcomes, rule.cascade.metric, rule, without={*failed, *scored}) if rule.cascade else []
    places = []
    for position, index in enumerate([*scored, *others]):
        metric = rule.metric if index in scored or not rule.cascade else rule.cascade.metric
        places.append(RankedItem(index, accepted(position, outcomes[index].get(rule.metric), rule), metric))
    return places + [
        RankedItem(index, rule.on_error == "pass", failed=fault) for index, fault in failed.items()
    ]


def best(outcomes: Sequence[Outcomes], metric: str, rule: Rule, without: Collection[int] = ()) -> list[int]:
    """The pictures that *metric* has scored, the best score first; of equals the first of the request."""
    merits = {
        index: rule.merit(metric, outcome.value)
        for index, each in enumerate(outcomes)
        if index not in without and isinstance(outcome := each.get(metric), Score)
    }
    return sorted(merits, key=lambda index: -merits[index])  # which leaves equals as they are


def accepted(position: int, outcome: MetricResult | None, rule: Rule) -> bool:
    """Whether a picture is within `top_k` and reaches the threshold; *outcome*: None for one that was cut."""
    if outcome is None or (rule.top_k is not None and position >= rule.top_k):
        return False
    if rule.threshold is None:
        return True
    least = rule.merit(rule.metric, rule.threshold)
    return isinstance(outcome, Score) and rule.merit(rule.metric, outcome.value) >= least


def fault_of(outcomes: Outcomes, rule: Rule) -> tuple[str, ScoregateError] | None:
    """The metric under which a picture failed, and how; a lack of time is none where that is allowed for."""
    for metric, outcome in outcomes.items():
        if isinstance(outcome, ScoregateError) and not is_late(metric, outcome, rule):
            return metric, outcome
    return None


def is_late(metric: str, outcome: MetricResult | None, rule: Rule) -> bool:
    """Whether *metric* ran out of time over a picture that the cascade's metric may stand in for."""
    allowed = rule.on_deadline == "cheap" and metric == rule.metric
    return allowed and isinstance(outcome, DeadlineExceeded)


def refuse(report: Report, rule: Rule) -> None:
    """
    Raise where one stage of a ranking leaves nothing that may be answered.

    Raises:
        ImageFailed: a picture failed, and `on_error` is "raise"; every such picture is named.
        DeadlineExceeded: the time ran out over a picture, and nothing may stand in for its score.
        LaneFull, Overloaded, NotReady: pictures were refused, all of them or with `on_error` "raise".
    """
    faults = [
        (item.item.place, fault[1]) for item in report.items if (fault := fault_of(item.outcomes, rule))
    ]
    late = [(place, error) for place, error in faults if isinstance(error, DeadlineExceeded)]
    refused = [error for _, error in faults if isinstance(error, REFUSALS)]
    failed = [each for each in faults if not isinstance(each[1], (DeadlineExceeded, *REFUSALS))]
    if failed and rule.on_error == "raise":
        (place, first), *more = failed
        detail = f"{place}: {first.detail}" + (f" (and {len(more)} more)" if more else "")
        raise ImageFailed(detail, faults=named(failed))
    if late:
        raise DeadlineExceeded(stage=late[0][1].stage, faults=named(late))
    if refused and (rule.on_error == "raise" or len(refused) == len(report.items)):
        raise most_telling(refused)


def named(failed: Sequence[tuple[str, ScoregateError]]) -> list[Fault]:
    """Errors of pictures as faults of the request."""
    return [Fault(place, error.code, error.detail) for place, error in failed]
