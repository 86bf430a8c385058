"""
Flow-Factory: a reward model that asks the service.

The trainer imports `scoregate.trainers.flow_factory.ScoregateRewardModel` by this path from its YAML, makes
it with `config` and `accelerator`, and knows by its base class that it scores each sample by itself
(`flow_factory/rewards/abc.py`, `registry.py`).  Flow-Factory must therefore be installed to import this.
"""

from __future__ import annotations

from typing import Any

from flow_factory.rewards.abc import (  # type: ignore[import-not-found]
    PointwiseRewardModel,
    RewardModelOutput,
)

from scoregate.trainers.reward import Reward

SETTINGS = ("metric", "logit", "options", "base_url", "priority", "timeout_s", "batch", "at_once")


class ScoregateRewardModel(PointwiseRewardModel):  # type: ignore[misc]  # Flow-Factory is not here to be read
    """
    Scores from the service, one for each sample.

    Any attribute of `Reward` but the key may stand in the reward's YAML.  The key comes from
    SCOREGATE_API_KEY, because the trainer logs its YAML.

    Raises:
        ScoregateError: at the start, the service cannot be reached or does not serve the metric; later,
            a picture has no score.  Flow-Factory knows no masked sample.
    """

    required_fields = ("prompt", "image")
    use_tensor_inputs = False

    def __init__(self, config: Any, accelerator: Any) -> None:
        super().__init__(config, accelerator)
        given = {name: getattr(config, name, None) for name in SETTINGS}
        self.reward = Reward(**{name: value for name, value in given.items() if value is not None})
        self.reward.check()

    def __call__(self, prompt: list[str], image: list[Any] | None = None, **_: Any) -> Any:
        if image is None:
            raise ValueError("these samples have no image; scoregate scores images only")
        return RewardModelOutput(rewards=self.reward(image, prompt))
