"""
The score of a reward model that is served elsewhere, such as one of the HPSv3 family (Ma et al. 2025).

One raw output of the head of a reward model that vLLM serves: the first (of HPSv3 the mean μ of people's
preference), or that of the model's setting `output`.
"""

from math import inf

from typing_extensions import TypedDict

from models.core.calls import RewardCall
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls


class RewardModelOptions(MetricOptions):
    """Options of `reward_model`."""


class RewardModelDetails(TypedDict):
    """Details of `reward_model`: the model's outputs, one of which is the score."""

    outputs: list[float]


async def reward_model(item: Item, models: ModelCalls, options: RewardModelOptions) -> Score:
    """
    Return the output of the model's head for image and prompt, without sigmoid or scale.

    HPSv3 returns a mean and a deviation of people's preference, and the score is the mean.
    """
    [result] = await models.ask("reward", [RewardCall(item.image, item.prompt)])
    details: RewardModelDetails = {"outputs": [*result.outputs]}
    return Score(result.value, details)


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
