"""
EditReward (Wu et al. 2026): people's preference for an edit of a source picture by an instruction.

How well a picture is the edit of the item's `source` that the prompt describes, by EditReward. Two heads
read both pictures, with an instruction each, in one batch; the score is the mean of their μ, as in the
released code.

EditScore's models write grades as text, and have no head: serve them behind vLLM, and use `judge` with the
rubric `editscore`.
"""

from math import inf

from typing_extensions import TypedDict

from models.core.calls import EditCall
from models.families.editreward import REPOSITORY
from service.core.errors import MissingImage
from service.metrics.common.contract import SOURCE, Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls
from service.metrics.common.outputs import with_outputs
from service.serving.admission import Demand

ROLE = "editreward"


class EditRewardOptions(MetricOptions):
    """Options of `editreward`."""


class EditRewardDetails(TypedDict):
    """
    Details of `editreward`.

    Attributes:
        mu, sigma: the means of both heads' outputs, as the released code returns them.
        following, following_sigma: the outputs of the head about instruction following.
        quality, quality_sigma: the outputs of the head about visual quality.
    """

    mu: float
    sigma: float
    following: float
    following_sigma: float
    quality: float
    quality_sigma: float


async def editreward(item: Item, models: ModelCalls, options: EditRewardOptions) -> Score:
    """
    Return the mean of both heads' first outputs for the edit of the source that the prompt describes.

    Raises:
        MissingImage: the item has no source.
    """
    if item.source is None:
        raise MissingImage("editreward needs the item's source, and it has none")
    [found] = await models.ask(ROLE, [EditCall(item.image, item.prompt, item.source)])
    mu, sigma, following, following_sigma, quality, quality_sigma = found.outputs
    details: EditRewardDetails = {
        "mu": mu,
        "sigma": sigma,
        "following": following,
        "following_sigma": following_sigma,
        "quality": quality,
        "quality_sigma": quality_sigma,
    }
    return Score(mu, details)


OUTPUTS = {
    "mu": "the mean of both heads' first outputs",
    "sigma": "the mean of both heads' second outputs",
    "following": "the first output of the head about instruction following",
    "quality": "the first output of the head about visual quality",
}

metric = with_outputs(
    Metric(
        "editreward",
        editreward,
        options=EditRewardOptions,
        details=EditRewardDetails,
        roles=(ROLE,),
        demand_of=lambda prompt, options: {ROLE: Demand(1, 2 * len(prompt))},
        range=(-inf, inf),
        formula="(μ of following + μ of quality) / 2",
        paper="Wu et al. 2026, arXiv 2509.26346",
        own_model=True,
        weights=REPOSITORY,
        uses=(SOURCE,),
        needs="a source",
    ),
    OUTPUTS,
)
