"""
Flow-Factory: a reward model that uses the service.

The trainer imports `scoregate.trainers.flow_factory.ScoregateRewardModel` by this path from its YAML, makes
it with `config` and `accelerator`, and scores each sample separately, as its base class says
(`flow_factory/rewards/abc.py`, `registry.py`).  Flow-Factory must therefore be installed to import this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar

from flow_factory.rewards.abc import (  # type: ignore[import-not-found]
    GroupwiseRewardModel,
    PointwiseRewardModel,
    RewardModelOutput,
)

from scoregate.trainers.reward import Reward

SETTINGS = [each.name for each in fields(Reward) if each.name not in ("api_key", "transport", "gather")]


class OfTheService:
    """
    What both kinds of reward models share.

    Attributes of `Reward` can be set in the reward's YAML, except for the key, since the trainer logs it:
    set SCOREGATE_API_KEY.

    Raises:
        ScoregateError: at the start, the service cannot be reached or does not serve the metric; later,
            a picture has no score.  Flow-Factory has no masked samples.
    """

    settings: ClassVar[dict[str, Any]] = {}
    required_fields = ("prompt", "image")
    use_tensor_inputs = True  # the trainer guesses PIL's range over the batch, which one NaN breaks

    def __init__(self, config: Any, accelerator: Any) -> None:
        super().__init__(config, accelerator)  # type: ignore[call-arg]  # that of the trainer's class
        given = {name: getattr(config, name, None) for name in SETTINGS} | self.settings
        self.reward = Reward(**{name: value for name, value in given.items() if value is not None})
        self.compares = any("references" in each.get("uses", ()) for each in self.reward.check().values())

    def __call__(
        self,
        prompt: list[str],
        image: Sequence[Any] | None = None,
        condition_images: Sequence[Any] | None = None,
        **_: Any,
    ) -> Any:
        """
        Return the reward of each sample, and as `extra_info` its scores by metric.

        Args:
            image: tensors of CHW from 0 to 1.
            condition_images: the source pictures of each sample, used as its references.

        Raises:
            ValueError: there is no image, or the metric does not use condition images.
        """
        if image is None:
            raise ValueError("these samples have no image; scoregate scores images only")
        if not self.compares and any(map(len, condition_images or ())):
            raise ValueError(
                f"these samples have condition_images, and {' and '.join(self.reward.names)} does not use"
                " references"
            )
        rewards = self.reward(image, prompt, references=condition_images)
        return RewardModelOutput(rewards=list(rewards), extra_info=rewards.parts)


class ScoregateRewardModel(OfTheService, PointwiseRewardModel):  # type: ignore[misc]  # it is not installed
    """Scores from the service, one for each sample."""


class ScoregateGroupRewardModel(OfTheService, GroupwiseRewardModel):  # type: ignore[misc]  # likewise
    """Win rates within a group, whose samples the trainer passes in one call, also those of other ranks."""

    settings: ClassVar[dict[str, Any]] = {"group_by": "prompt"}
