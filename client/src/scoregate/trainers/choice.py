"""Choice of the best pictures, in the metric's direction."""

from __future__ import annotations

from collections.abc import Sequence

from scoregate.errors import ScoregateError
from scoregate.trainers.outcomes import Outcome
from scoregate.trainers.reward import Reward


def best_first(reward: Reward, outcomes: Sequence[Outcome]) -> dict[int, float]:
    """
    Return the scores among *outcomes* by index, the best one first.

    Raises:
        ScoregateError: the direction of the metric is unknown.
    """
    scored = [(place, one) for place, one in enumerate(outcomes) if not isinstance(one, ScoregateError)]
    sign = 1.0 if scored and reward.lower_is_better() else -1.0
    return dict(sorted(scored, key=lambda each: sign * each[1]))


def reaching(reward: Reward, outcomes: Sequence[Outcome], threshold: float) -> list[bool | ScoregateError]:
    """
    Return for each outcome True if its score is as good as *threshold*, or its error.

    If the direction of the metric is unknown, that error is returned for all.
    """
    if all(isinstance(one, ScoregateError) for one in outcomes):
        return [one for one in outcomes if isinstance(one, ScoregateError)]
    try:
        lower = reward.lower_is_better()
    except ScoregateError as error:
        return [one if isinstance(one, ScoregateError) else error for one in outcomes]
    return [
        one if isinstance(one, ScoregateError) else one <= threshold if lower else one >= threshold
        for one in outcomes
    ]
