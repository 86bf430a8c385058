"""One score for an item from the scores of its frames."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from models.images.grid import side
from service.core.errors import BadImage, ScoregateError
from service.metrics.common.contract import Score
from service.scoring.frames import FrameRef, Inputs, ItemPlan, MetricInput
from service.scoring.report import MetricResult
from service.serving.context import WORST_FIRST

Results = Mapping[MetricInput, Mapping[str, MetricResult]]


def folded(plan: ItemPlan, results: Results) -> dict[str, MetricResult]:
    """Return an item's result for each metric, from those of its inputs."""
    return {name: one(name, inputs, results) for name, inputs in plan.inputs.items()}


def one(metric: str, inputs: Inputs, results: Results) -> MetricResult:
    """Return the result of one metric: the mean over its frames, or the score of its grid."""
    if isinstance(inputs, BadImage):
        return inputs
    of_inputs = [results[input][metric] for input in inputs]
    first = inputs[0]
    if first.given == 1:
        return of_inputs[0]
    if len(first.frames) > 1:
        return of_grid(of_inputs[0], len(first.frames), first.given)
    return mean(of_inputs, [frame for input in inputs for frame in input.frames], first.given)


def of_grid(result: MetricResult, used: int, given: int) -> MetricResult:
    """Return a grid's result with the grid's size added to its details."""
    if isinstance(result, ScoregateError):
        return result
    details = {"grid": result.details, "side": side(used), "frames_used": used, "frames_given": given}
    return replace(result, details=details)


def mean(results: Sequence[MetricResult], frames: Sequence[FrameRef], given: int) -> MetricResult:
    """Return the mean of all frames' scores; if a frame failed, its error, which names the frame."""
    for result, frame in zip(results, frames, strict=True):
        if isinstance(result, ScoregateError):
            return result.of_part(frame.place)
    scores = [result for result in results if isinstance(result, Score)]
    details: dict[str, Any] = {
        "frames": [
            {"score": score.value, **frame.of_film, **score.details}
            for score, frame in zip(scores, frames, strict=True)
        ],
        "frames_used": len(scores),
        "frames_given": given,
    }
    warnings = tuple(note for score in scores for note in score.warnings)
    value = sum(score.value for score in scores) / len(scores)
    statuses = {score.cache for score in scores}
    cache = next((status for status in WORST_FIRST if status in statuses), None)
    return Score(value, details, cache, warnings)
