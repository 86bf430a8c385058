"""How the scores of an item's frames become one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from models.images.grid import side
from service.core.errors import ScoregateError
from service.metrics.common.contract import Score
from service.scoring.frames import Frames, ItemPlan, MetricInput
from service.serving.context import WORST_FIRST

MetricResult = Score | ScoregateError


def folded(
    asked: ItemPlan, seen: Mapping[MetricInput, Mapping[str, MetricResult]]
) -> dict[str, MetricResult]:
    """What an item comes to, by metric, from what each view of it came to."""
    return {name: one(name, frames, seen) for name, frames in asked.frames.items()}


def one(metric: str, frames: Frames, seen: Mapping[MetricInput, Mapping[str, MetricResult]]) -> MetricResult:
    """The score of one metric: the mean over its views, or that of its grid."""
    if isinstance(frames.views, ScoregateError):
        return frames.views
    outcomes = [seen[view][metric] for view in frames.views]
    if frames.given == 1:
        return outcomes[0]
    if len(frames.views[0].shots) > 1:
        return of_grid(outcomes[0], len(frames.views[0].shots), frames.given)
    return mean(outcomes, [shot.place for view in frames.views for shot in view.shots], frames.given)


def of_grid(outcome: MetricResult, used: int, given: int) -> MetricResult:
    """A grid's score, whose details say what was in it."""
    if isinstance(outcome, ScoregateError):
        return outcome
    details = {"grid": outcome.details, "side": side(used), "frames_used": used, "frames_given": given}
    return replace(outcome, details=details)


def mean(outcomes: Sequence[MetricResult], places: Sequence[str], given: int) -> MetricResult:
    """The mean of all frames' scores; where a frame has an error, that error, which names the frame."""
    for outcome, place in zip(outcomes, places, strict=True):
        if isinstance(outcome, ScoregateError):
            return outcome.of_part(place)
    scores = [outcome for outcome in outcomes if isinstance(outcome, Score)]
    details: dict[str, Any] = {
        "frames": [score.details for score in scores],
        "frames_used": len(scores),
        "frames_given": given,
    }
    warnings = tuple(note for score in scores for note in score.warnings)
    value = sum(score.value for score in scores) / len(scores)
    ways = {score.cache for score in scores}
    cache = next((way for way in WORST_FIRST if way in ways), None)
    return Score(value, details, cache, warnings)
