"""
flow_grpo, DiffusionNFT, ddpo-pytorch and TRL's old DDPOTrainer: factories of reward functions.

The contract is the dictionary `score_functions` of flow_grpo's `flow_grpo/rewards.py`: a real function, since
the trainer searches for the name `device` in its code, that returns `_fn(images, prompts, metadata)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from scoregate.trainers.reward import Reward

RewardFunction = Callable[..., tuple[list[float], dict[str, Any]]]
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
        ) -> tuple[list[float], dict[str, Any]]:
            return reward(images, prompts, fill=fill), {}

        return _fn

    return t2i_score


t2i_score = factory()
t2i_score_logit = factory(logit=True)
t2i_score_eval = factory(fill=NOT_APPLICABLE)
