"""
verl-omni: a reward function for `+reward.reward_functions.NAME.path=pkg://scoregate.trainers.verl_omni`.

The trainer calls it by keyword, once per sample, with hundreds of concurrent calls on the event loop of each
reward worker (`verl_omni/reward_loop/reward_manager/multi.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from scoregate.errors import ScoregateError
from scoregate.images import Frames
from scoregate.trainers.outcomes import weights_of
from scoregate.trainers.reward import Reward
from scoregate.trainers.watch import Watch

reward = cache(Reward)  # one for each set of settings; it opens connections per process and event loop


async def compute_score(
    solution_image: Any,
    ground_truth: str,
    server_url: str | None = None,
    metric: str = "vqascore",
    logit: bool = True,
    timeout_s: float = 300.0,
    strict: bool = False,
    metrics: Sequence[str] = (),
    weights: Mapping[str, float] | Sequence[float] | None = None,
    encode: str = "raw",
    watch: Sequence[str] = (),
    watch_every: int = 2000,
    **_: Any,
) -> dict[str, float]:
    """
    Return the reward of one sample as `score`, and its scores by metric, which the trainer logs too.

    Args:
        solution_image: uint8 CHW; or TCHW, the frames of a video, whose mean is the score.
        ground_truth: the prompt.
        server_url: the service; by default SCOREGATE_BASE_URL.  This and what follows are keys of the reward
            function in the trainer's configuration.
        timeout_s: for this sample, with all that is tried again and the wait for a connection.
        strict: whether a score that the service warns about is an error.
        metrics, weights: several metrics in place of *metric*; `score` is their weighted sum.
        watch, watch_every: the metrics of a `scoregate.trainers.watch.Watch`, and its `every`.

    Raises:
        ScoregateError: there is no score.  With `required=true` verl-omni stops; without, it counts a 0.
    """
    image = solution_image if solution_image.ndim == 3 else Frames(solution_image)
    scorer = reward(
        metric,
        logit,
        metrics=tuple(metrics),
        weights=tuple(weights_of(metrics, weights).values()) or None,
        encode=encode,
        base_url=server_url,
        timeout_s=timeout_s,
        strict=strict,
        watch=Watch(tuple(watch), every=watch_every) if watch else None,
    )
    [outcome] = await scorer.outcomes_soon([image], [ground_truth])
    if isinstance(outcome, ScoregateError):
        raise outcome
    return {"score": float(outcome), **outcome.parts}
