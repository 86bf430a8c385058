"""
HPSv3 (Ma et al. 2025): people's preference for a picture of a prompt, with its uncertainty.

μ, the first output of HPSv3's head for picture and prompt, as the released code returns it. Its outputs are
metrics of their own, from the same call:
"""

from math import exp, inf

from typing_extensions import TypedDict

from models.core.calls import RewardCall
from models.families.hpsv3 import REPOSITORY
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls
from service.metrics.common.outputs import with_outputs

ROLE = "hpsv3"


class Hpsv3Options(MetricOptions):
    """Options of `hpsv3`."""


class Hpsv3Details(TypedDict):
    """
    Details of `hpsv3`.

    Attributes:
        mu, sigma: the outputs of the model's head, as the released code returns them.
        deviation: exp(sigma), the standard deviation of the preference in the model's training.
    """

    mu: float
    sigma: float
    deviation: float


async def hpsv3(item: Item, models: ModelCalls, options: Hpsv3Options) -> Score:
    """Return mu, the mean of the preference; the second output of the head is in the details."""
    [found] = await models.ask(ROLE, [RewardCall(item.image, item.prompt)])
    return preference(*found.outputs)


def preference(mu: float, sigma: float) -> Score:
    """Return the score of the two outputs of a head.  Raises `OverflowError` if exp(sigma) is infinite."""
    details: Hpsv3Details = {"mu": mu, "sigma": sigma, "deviation": exp(sigma)}
    return Score(mu, details)


OUTPUTS = {
    "mu": "μ, the head's first output",
    "sigma": "the head's second output, which the released code calls sigma",
}

metric = with_outputs(
    Metric(
        "hpsv3",
        hpsv3,
        options=Hpsv3Options,
        details=Hpsv3Details,
        roles=(ROLE,),
        range=(-inf, inf),
        formula="μ, the first output of the model's head",
        paper="Ma et al. 2025, arXiv 2508.03789",
        own_model=True,
        weights=REPOSITORY,
    ),
    OUTPUTS,
)
