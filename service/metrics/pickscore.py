"""
PickScore (Kirstain et al. 2023, "Pick-a-Pic"): a CLIP trained on people's choices between two pictures.

The cosine, as in t2v_metrics. `scale: "logit"` is exp(`logit_scale` of the checkpoint) · cos, as in the
authors' code: PickScores around 20 in papers are logits.
"""

from typing import Literal

from typing_extensions import TypedDict

from models.families.clip import PICKSCORE
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls, cosine_demand

MAX_SCALE = 100  # CLIP's training clips exp(logit_scale) there (Radford et al. 2021, section 2.5)


class PickScoreOptions(MetricOptions):
    """
    Options of `pickscore`.

    Attributes:
        scale: `"cosine"`, or `"logit"`: exp(`logit_scale` of the checkpoint) · cos.
    """

    scale: Literal["cosine", "logit"] = "cosine"


class PickScoreDetails(TypedDict):
    """Details of `pickscore`; `logit_scale` is the checkpoint's factor of cosines."""

    cosine: float
    logit_scale: float
    scale: str


async def pickscore(item: Item, models: ModelCalls, options: PickScoreOptions) -> Score:
    """
    Return cos(E_image, E_prompt) under PickScore's weights, as VQAScore's authors compute it (t2v_metrics).

    `scale: "logit"` multiplies by exp(logit_scale) of the checkpoint, as the authors' own code does;
    a softmax of that over the candidates of a prompt is the probability that people choose each.
    """
    cosine, warnings = await models.clip.cosine(item.image, item.prompt)
    scale = models.clip.logit_scale
    value = scale * cosine if options.scale == "logit" else cosine
    details: PickScoreDetails = {"cosine": cosine, "logit_scale": scale, "scale": options.scale}
    return Score(value, details, warnings=warnings)


metric = Metric(
    "pickscore",
    pickscore,
    options=PickScoreOptions,
    details=PickScoreDetails,
    roles=("clip",),
    demand_of=cosine_demand,
    range=lambda options: (-MAX_SCALE, MAX_SCALE) if options.scale == "logit" else (-1, 1),
    formula="cos(E_image, E_prompt)",
    paper="Kirstain et al. 2023, arXiv 2305.01569",
    own_model=True,
    weights=PICKSCORE,
)
