"""
LAION's aesthetic predictors (Schuhmann et al. 2022): the beauty of a picture, without a prompt.

The beauty of a picture, fitted to ratings from 1 to 10, without bounds: the output of LAION's head for the
embedding of OpenAI's CLIP ViT-L/14. **The prompt is not used**: never use this metric alone as a reward or
a filter for alignment.

Version 2 is `sac+logos+ava1-l14-linearMSE.pth` of christophschuhmann/improved-aesthetic-predictor, version
1 `sa_0_4_vit_l_14_linear.pth` of LAION-AI/aesthetic-predictor, on another scale. Heads with activations
between the layers (`reluMSE`) are rejected.
"""

from math import inf

from typing_extensions import TypedDict

from models.core.calls import RewardCall
from models.families.aesthetic import AESTHETIC
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls

ROLE = "aesthetic"


class AestheticOptions(MetricOptions):
    """Options of `aesthetic`."""


class AestheticDetails(TypedDict):
    """Details of `aesthetic`."""

    rating: float


async def aesthetic(item: Item, models: ModelCalls, options: AestheticOptions) -> Score:
    """Return the head's rating of the image's embedding, from about 1 to 10.  The prompt is not used."""
    [found] = await models.ask(ROLE, [RewardCall(item.image)])
    details: AestheticDetails = {"rating": found.value}
    return Score(found.value, details)


metric = Metric(
    "aesthetic",
    aesthetic,
    options=AestheticOptions,
    details=AestheticDetails,
    roles=(ROLE,),
    range=(-inf, inf),
    formula="head(E_image / ‖E_image‖), whatever the prompt",
    paper="Schuhmann et al. 2022, arXiv 2210.08402",
    own_model=True,
    weights=AESTHETIC,
    reads_prompt=False,
)
