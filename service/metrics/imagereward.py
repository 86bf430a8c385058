"""
ImageReward (Xu et al. 2023): people's preference for a picture of a prompt.

The number r of a head on BLIP, standardised as in the authors' package:

    score = (r - 0.16717362830052426) / 1.0333394966054072

The prompt is in lower case, with at most 35 tokens. The picture is cropped to its centre square.
"""

from math import inf

from typing_extensions import TypedDict

from models.core.calls import RewardCall
from models.families.imagereward import REPOSITORY
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls
from service.observability.notes import Code, Note

ROLE = "imagereward"
PROMPT_CUT_NOTE = Note(Code.PROMPT_TRUNCATED, "the prompt was cut at ImageReward's 35 tokens")


class ImageRewardOptions(MetricOptions):
    """Options of `imagereward`."""


class ImageRewardDetails(TypedDict):
    """Details of `imagereward`."""

    reward: float


async def imagereward(item: Item, models: ModelCalls, options: ImageRewardOptions) -> Score:
    """Return (r - 0.1672) / 1.0333 of ImageReward's output r, as the authors' package returns it."""
    [found] = await models.ask(ROLE, [RewardCall(item.image, item.prompt)])
    warnings = (PROMPT_CUT_NOTE,) if found.truncated else ()
    details: ImageRewardDetails = {"reward": found.value}
    return Score(found.value, details, warnings=warnings)


metric = Metric(
    "imagereward",
    imagereward,
    options=ImageRewardOptions,
    details=ImageRewardDetails,
    roles=(ROLE,),
    range=(-inf, inf),
    formula="(r - 0.1672) / 1.0333, where r is the model's output",
    paper="Xu et al. 2023, arXiv 2304.05977",
    own_model=True,
    weights=REPOSITORY,
)
