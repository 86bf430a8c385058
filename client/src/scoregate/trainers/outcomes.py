"""The outcome of a picture: its reward with the parts, or its error; and the choice among outcomes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from typing import TypeVar

from scoregate.errors import (
    InvalidError,
    NoScoreError,
    ScoregateError,
    ServiceConnectionError,
    ServiceTimeoutError,
    TooLargeError,
)
from scoregate.items import names_of
from scoregate.results import Result

T = TypeVar("T")
REQUEST_ERRORS = (
    ServiceConnectionError,
    ServiceTimeoutError,
    ScoregateError,
)  # the last as itself: a response of an unknown form


class Scored(float):
    """
    A reward: the weighted sum of the scores of one picture.

    Attributes:
        parts: each score by metric, without its weight.
        cached: the share of the scores that the service had in its cache.
        warned: the number of the service's warnings.
        left_out: the error of each metric that is not required and has no score.
        of_group: its parts are win rates within a group, which have no range and no cache of their own.
    """

    parts: Mapping[str, float] = {}
    cached: float = 0.0
    warned: int = 0
    left_out: Mapping[str, ScoregateError] = {}
    of_group: bool = False


ScoredOrError = Scored | ScoregateError


@dataclass(frozen=True)
class WeightedSum:
    """
    The sum of a picture's scores.

    Attributes:
        weights: by metric.
        required: the metrics without which there is no sum.

    Raises:
        ValueError: a metric with a negative weight is not required.
    """

    weights: Mapping[str, float]
    required: Collection[str]

    def __post_init__(self) -> None:
        for metric, weight in self.weights.items():
            if weight < 0 and metric not in self.required:
                raise ValueError(
                    f"{metric!r} has the negative weight {weight:g}, so it must be in required: without its"
                    " score a picture would have a higher reward"
                )

    def of(self, result: Result) -> ScoredOrError:
        """
        Return the reward of a result, or the first error of a required metric.

        Without the score of another metric, the positive weights that remain are scaled to the sum of all
        positive weights.  Negative weights stay as they are.
        """
        missing = {metric: result.errors[metric] for metric in self.weights if metric in result.errors}
        there = {metric: weight for metric, weight in self.weights.items() if metric not in missing}
        remaining, of_all = positive(there), positive(self.weights)
        for metric, error in missing.items():
            if metric in self.required or not remaining:
                return error if len(self.weights) == 1 else error.at(metric)
        if missing:  # divided first: of_all / remaining may overflow
            there = {
                metric: weight / remaining * of_all if weight > 0 else weight
                for metric, weight in there.items()
            }
        parts = {metric: result.scores[metric] for metric in there}
        scored = Scored(sum(weight * parts[metric] for metric, weight in there.items()))
        if not isfinite(scored):
            return ScoregateError("the weighted sum is not finite", request_id=result.request_id)
        scored.parts = parts
        scored.cached = sum(result.cache.get(metric) == "hit" for metric in there) / len(there)
        scored.warned, scored.left_out = len(result.warnings), missing
        return scored


def positive(weights: Mapping[str, float]) -> float:
    """Return the sum of the positive weights."""
    return sum(weight for weight in weights.values() if weight > 0)


class Rewards(list[float]):
    """
    The rewards of a call, in the order of its pictures.

    Attributes:
        parts: the scores of each metric, in the same order and without its weight; None for a picture that
            it does not score.
    """

    def __init__(self, scored: Sequence[Scored], metrics: Iterator[str] | Sequence[str]) -> None:
        super().__init__(map(float, scored))
        self.parts = {metric: [one.parts.get(metric) for one in scored] for metric in metrics}


def weights_of(
    metrics: Sequence[str], weights: Mapping[str, float] | Sequence[float] | None
) -> dict[str, float]:
    """
    Return the weight of each metric: 1 by default.

    Raises:
        ValueError: a metric is named twice, or *weights* are not a finite number for each.
    """
    if len(set(metrics)) < len(metrics):
        raise ValueError(f"a metric is named twice: {', '.join(metrics)}")
    if weights is None:
        return dict.fromkeys(metrics, 1.0)
    found = dict(weights) if isinstance(weights, Mapping) else dict(zip(metrics, weights, strict=False))
    if found.keys() != set(metrics) or len(found) != len(weights):
        raise ValueError(f"there must be a weight for each of {', '.join(metrics)}, and there is {weights!r}")
    if wrong := [name for name, weight in found.items() if not isfinite(weight)]:
        raise ValueError(f"the weight of {wrong[0]} is not finite")
    return {metric: float(found[metric]) for metric in metrics}


def weighted_sums(
    by_domain: Mapping[str, Mapping[str, float]], required: Sequence[str] | str | None
) -> dict[str, WeightedSum]:
    """
    Return the weighted sum of each domain.

    Args:
        by_domain: the weights of each.
        required: metrics of any of them; None for all.

    Raises:
        ValueError: a domain has no metric, a weight is not finite, a required metric has no weight, or a
            metric with a negative weight is not required.
    """
    weights = {domain: weights_of(list(each), each) for domain, each in by_domain.items()}
    if empty := [domain for domain, each in weights.items() if not each]:
        raise ValueError(f"the domain {empty[0]!r} has no metric")
    known = dict.fromkeys(chain.from_iterable(weights.values()))
    needed = known if required is None else names_of(required)
    if wrong := [name for name in needed if name not in known]:
        raise ValueError(f"{wrong[0]!r} is required, and is none of {', '.join(known)}")
    return {domain: WeightedSum(each, set(needed)) for domain, each in weights.items()}


def filled(value: float, metrics: Sequence[str]) -> Scored:
    """Return *value* as a reward, and as each of its parts."""
    scored = Scored(value)
    scored.parts = dict.fromkeys(metrics, value)
    return scored


def complete(outcomes: Sequence[T | ScoregateError]) -> list[T]:
    """Return *outcomes* if all are scores.  Raises `NoScoreError`."""
    found = [one for one in outcomes if not isinstance(one, ScoregateError)]
    if len(found) < len(outcomes):
        raise NoScoreError.among(outcomes)
    return found


def of_the_sample(outcome: ScoredOrError) -> bool:
    """Return True for an error that the picture or its prompt has caused."""
    return isinstance(outcome, InvalidError) and of_one(outcome)


def of_one(error: ScoregateError) -> bool:
    """
    Return True if an error is that of one picture or its prompt, and not of the whole request.

    These are errors of single items in a response, pictures that the client cannot read, and rejections that
    name only items.
    """
    if error.status:
        return names(error, "/items/")
    return type(error) not in REQUEST_ERRORS


def concerns_some(error: ScoregateError) -> bool:
    """Return True if a request was rejected for its size, or for single items."""
    return isinstance(error, TooLargeError) or names(error, "/items")


def names(error: ScoregateError, place: str) -> bool:
    """Return True if an error names places, and all of them begin with *place*."""
    return bool(error.errors) and all(each["pointer"].startswith(place) for each in error.errors)


def best_first(outcomes: Sequence[ScoredOrError], lower_is_better: Callable[[], bool]) -> dict[int, float]:
    """
    Return the scores among *outcomes* by index, the best one first.

    Args:
        lower_is_better: the direction of the metric; not called if there is no score.

    Raises:
        ScoregateError: the direction is unknown.
    """
    scored = [(place, one) for place, one in enumerate(outcomes) if not isinstance(one, ScoregateError)]
    sign = 1.0 if scored and lower_is_better() else -1.0
    return dict(sorted(scored, key=lambda each: sign * each[1]))


def reaching(
    outcomes: Sequence[ScoredOrError], threshold: float, lower_is_better: Callable[[], bool]
) -> list[bool | ScoregateError]:
    """
    Return for each outcome True if its score is as good as *threshold*, or its error.

    If the direction of the metric is unknown, that error is returned for each score.
    """
    if all(isinstance(one, ScoregateError) for one in outcomes):
        return [one for one in outcomes if isinstance(one, ScoregateError)]
    try:
        lower = lower_is_better()
    except ScoregateError as error:
        return [one if isinstance(one, ScoregateError) else error for one in outcomes]
    return [
        one if isinstance(one, ScoregateError) else one <= threshold if lower else one >= threshold
        for one in outcomes
    ]
