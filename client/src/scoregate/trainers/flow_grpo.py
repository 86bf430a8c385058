"""
flow_grpo, DiffusionNFT, ddpo-pytorch and TRL's old DDPOTrainer: factories of reward functions.

The contract is the dictionary `score_functions` of flow_grpo's `flow_grpo/rewards.py`: a factory, in whose
`__code__` the trainer searches for the name `device`, that returns `_fn(images, prompts, metadata)`.
`multi_score` is there to be replaced by ours, which has one request for all metrics.  All of them can be
pickled, for processes that are spawned and for Ray.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any

from scoregate.trainers.reward import Reward

Parts = dict[str, list[float]]  # rewards by metric
RewardFunction = Callable[..., tuple[list[float], Parts]]
NOT_APPLICABLE = -10.0  # flow_grpo's evaluation skips these; as the sum, its training does not


@dataclass(frozen=True, eq=False)
class Factory:
    """A factory for `score_functions`: a class, since a function within a function cannot be pickled."""

    reward: Reward
    fill: float | None

    def __call__(self, device: Any = None) -> RewardFunction:
        """Return the reward function; *device* is not used."""
        return partial(scores, self.reward, self.fill)

    @property
    def __code__(self) -> CodeType:
        """The code of the call, as a function has it."""
        return type(self).__call__.__code__


def scores(
    reward: Reward,
    fill: float | None,
    images: Any,
    prompts: Sequence[str],
    metadata: Any = None,
    only_strict: bool = True,
) -> tuple[list[float], Parts]:
    """
    Return the reward of each picture, and its scores by metric.

    Args:
        metadata: of each prompt; its `domain`, if the reward has domains.
    """
    domains = [each["domain"] for each in metadata] if reward.by_domain else None
    rewards = reward(images, prompts, fill=fill, domains=domains)
    parts = {
        metric: [NOT_APPLICABLE if one is None else one for one in scores]
        for metric, scores in rewards.parts.items()
    }
    return list(rewards), parts


def factory(metric: str = "vqascore", *, fill: float | None = None, **settings: Any) -> Factory:
    """
    Return a factory for `score_functions`, with a metric and settings of your own.

    Args:
        fill: the reward of a picture that cannot be scored; None raises `NoScoreError`.  `NOT_APPLICABLE` is
            for evaluation only: in training it counts as a very bad picture.
        settings: attributes of `Reward`, such as `logit`, `base_url` and `timeout_s`.
    """
    return Factory(Reward(metric, **settings), fill)


def multi_score(
    device: Any, score_dict: Mapping[str, float], *, fill: float | None = None, **settings: Any
) -> Callable[..., tuple[Parts, dict[str, Any]]]:
    """
    Return flow_grpo's `multi_score(device, score_dict)` for metrics of the service, all in one request.

    The trainer logs each of them, and trains with `avg`, their sum by the weights of *score_dict*.

    Args:
        fill, settings: as for `factory`.
    """
    return partial(all_scores, Reward(metrics=list(score_dict), weights=dict(score_dict), **settings), fill)


def all_scores(
    reward: Reward,
    fill: float | None,
    images: Any,
    prompts: Sequence[str],
    metadata: Any = None,
    only_strict: bool = True,
) -> tuple[Parts, dict[str, Any]]:
    """Return the scores of the pictures by metric, with their weighted sums as `avg`."""
    sums, parts = scores(reward, fill, images, prompts)
    return {**parts, "avg": sums}, {}


t2i_score = t2i_score_logit = factory()
t2i_score_eval = factory(fill=NOT_APPLICABLE, logit=False)
