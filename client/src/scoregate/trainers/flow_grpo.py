"""
flow_grpo, DiffusionNFT, ddpo-pytorch and TRL's old DDPOTrainer: factories of reward functions.

The contract is the dictionary `score_functions` of flow_grpo's `flow_grpo/rewards.py`: a real function, since
the trainer searches for the name `device` in its code, that returns `_fn(images, prompts, metadata)`.
`multi_score` is there to be replaced by ours, which has one request for all metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scoregate.trainers.reward import Reward

Parts = dict[str, list[float]]  # of rewards, by metric
RewardFunction = Callable[..., tuple[list[float], Parts]]
NOT_APPLICABLE = -10.0  # flow_grpo's evaluation skips these; its training does not


def factory(
    metric: str = "vqascore", *, fill: float | None = None, **settings: Any
) -> Callable[..., RewardFunction]:
    """
    Return a factory for `score_functions`, with a metric and settings of your own.

    Args:
        fill: the reward of a picture that cannot be scored; None raises `NoScore`.  `NOT_APPLICABLE` is for
            evaluation only: in training it counts as a very bad picture.
        settings: attributes of `Reward`, such as `logit`, `base_url` and `timeout_s`.
    """
    reward = Reward(metric, **settings)

    def t2i_score(device: Any = None) -> RewardFunction:
        def _fn(
            images: Any, prompts: Sequence[str], metadata: Any = None, only_strict: bool = True
        ) -> tuple[list[float], Parts]:
            rewards = reward(images, prompts, fill=fill)
            return list(rewards), rewards.parts

        return _fn

    return t2i_score


def multi_score(
    device: Any, score_dict: Mapping[str, float], *, fill: float | None = None, **settings: Any
) -> Callable[..., tuple[Parts, dict[str, Any]]]:
    """
    Return flow_grpo's `multi_score(device, score_dict)` for metrics of the service, all in one request.

    The trainer logs each of them, and trains with `avg`, their sum by the weights of *score_dict*.

    Args:
        fill, settings: as for `factory`.
    """
    reward = Reward(metrics=list(score_dict), weights=score_dict, **settings)

    def _fn(
        images: Any, prompts: Sequence[str], metadata: Any = None, only_strict: bool = True
    ) -> tuple[Parts, dict[str, Any]]:
        rewards = reward(images, prompts, fill=fill)
        return {**rewards.parts, "avg": list(rewards)}, {}

    return _fn


t2i_score = t2i_score_logit = factory()
t2i_score_eval = factory(fill=NOT_APPLICABLE, logit=False)
