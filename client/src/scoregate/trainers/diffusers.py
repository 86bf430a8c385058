"""diffusers: choice of the best picture, and a gate by threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scoregate.errors import NoScoreError, ScoregateError
from scoregate.trainers.outcomes import best_first, reaching
from scoregate.trainers.reward import Reward

ON_ERROR = ("raise", "pass", "block")
INTERACTIVE = Reward(logit=False, priority="interactive", timeout_s=30.0)  # a user waits for the picture


@dataclass(frozen=True)
class Best:
    """
    The picture with the best score: the highest one, or the lowest if the metric says so.

    Attributes:
        image: as the pipeline gave it.
        scores: of all pictures, None if missing.
    """

    image: Any
    index: int
    score: float
    scores: Sequence[float | None]


def best_of_n(output: Any, prompt: str, *, reward: Reward = INTERACTIVE) -> Best:
    """
    Return the best of a pipeline's pictures for one prompt.

    Args:
        output: what the pipeline returned, or its `images`: PIL images, an array or a tensor.

    Raises:
        NoScoreError: no picture has a score.
        ScoregateError: the direction of the metric is unknown.
    """
    images = images_of(output)
    outcomes = reward.outcomes(images, prompts_for(images, prompt), trains=False)
    scores = [None if isinstance(one, ScoregateError) else one for one in outcomes]
    order = best_first(outcomes, reward.lower_is_better)
    if not order:
        raise NoScoreError.among(outcomes)
    index, score = next(iter(order.items()))
    return Best(images[index], index, score, scores)


def gate(
    output: Any,
    prompt: str | Sequence[str],
    threshold: float,
    *,
    on_error: str = "raise",
    reward: Reward = INTERACTIVE,
) -> list[bool]:
    """
    Return for each picture True if its score is *threshold* or better.

    Args:
        output: as for `best_of_n`.
        prompt: one, or as many as the pipeline was given; each has its pictures one after the other.
        on_error: `pass`, `block` or `raise`, for pictures without a score, whatever the reason.

    Raises:
        NoScoreError: a picture has no score, and *on_error* is `raise`.
    """
    if on_error not in ON_ERROR:
        raise ValueError(f"on_error is one of {', '.join(ON_ERROR)}, not {on_error!r}")
    images = images_of(output)
    outcomes = reward.outcomes(images, prompts_for(images, prompt), trains=False)
    reached = reaching(outcomes, threshold, reward.lower_is_better)
    if on_error == "raise" and any(isinstance(one, ScoregateError) for one in reached):
        raise NoScoreError.among(reached)
    return [on_error == "pass" if isinstance(one, ScoregateError) else one for one in reached]


def images_of(output: Any) -> Any:
    """Return the pictures of what a pipeline returned."""
    return getattr(output, "images", output)


def prompts_for(images: Any, prompt: str | Sequence[str]) -> list[str]:
    """Return a prompt for each picture, in the order in which a pipeline returns them."""
    prompts = [prompt] if isinstance(prompt, str) else list(prompt)
    each, left = divmod(len(images), len(prompts) or 1)
    if left or not prompts:
        raise ValueError(f"{len(images)} pictures cannot be shared evenly by {len(prompts)} prompts")
    return [one for one in prompts for _ in range(each)]
