"""How the scores of an item's frames become one."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.context import WORST_FIRST
from service.errors import ScoregateError
from service.metrics.contract import Score


def folded(
    frames: Sequence[Mapping[str, Score | ScoregateError]], metrics: Sequence[str]
) -> dict[str, Score | ScoregateError]:
    """What *frames* of one item come to, by metric."""
    return {name: mean([frame[name] for frame in frames]) for name in metrics}


def mean(outcomes: Sequence[Score | ScoregateError]) -> Score | ScoregateError:
    """The mean of all frames' scores; where a frame has an error, that error."""
    scores = [outcome for outcome in outcomes if isinstance(outcome, Score)]
    if len(scores) < len(outcomes):
        return next(error for error in outcomes if isinstance(error, ScoregateError))
    if len(scores) == 1:
        return scores[0]
    details: dict[str, Any] = {"frames": [score.details for score in scores]}
    warnings = tuple(dict.fromkeys(note for score in scores for note in score.warnings))
    value = sum(score.value for score in scores) / len(scores)
    ways = {score.cache for score in scores}
    cache = next((way for way in WORST_FIRST if way in ways), None)
    return Score(value, details, cache, warnings)
