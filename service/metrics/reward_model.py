"""The score of a reward model that is served elsewhere, such as one of the HPSv3 family (Ma et al. 2025)."""

from math import inf

from typing_extensions import TypedDict

from models.core.calls import RewardCall
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import Models


class RewardModelOptions(MetricOptions):
    """Options of `reward_model`."""


class RewardModelDetails(TypedDict):
    """What a `reward_model` is: one of the model's *outputs*."""

    outputs: list[float]


async def reward_model(item: Item, models: Models, options: RewardModelOptions) -> Score:
    """
    What the model's head says of image and prompt, as it is: no sigmoid, no scale.

    HPSv3 gives a mean and a deviation of people's preference, and the score is the mean.
    """
    [outcome] = await models.ask("reward", [RewardCall(item.image, item.prompt)])
    details: RewardModelDetails = {"outputs": [*outcome.outputs]}
    return Score(outcome.value, details)


metric = Metric(
    "reward_model",
    reward_model,
    options=RewardModelOptions,
    details=RewardModelDetails,
    roles=("reward",),
    range=(-inf, inf),
    formula="one output of the reward model's head",
    paper="Ma et al. 2025, arXiv 2508.03789",
    own_model=True,
)
