"""
HPS v2 (Wu et al. 2023, "Human Preference Score v2"): a CLIP trained on people's rankings of pictures.

The cosine, with the weights of v2 or v2.1, as in the authors' package; their benchmark prints it times 100.
To pad pictures that are not square with black, as the package does, set `resize_mode = "longest"` for the
model.
"""

from typing_extensions import TypedDict

from models.families.clip import HPSV2
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls, cosine_demand


class HpsV2Options(MetricOptions):
    """Options of `hpsv2`."""


class HpsV2Details(TypedDict):
    """Details of `hpsv2`."""

    cosine: float


async def hpsv2(item: Item, models: ModelCalls, options: HpsV2Options) -> Score:
    """Return cos(E_image, E_prompt) under HPS v2's weights, as the authors' package returns it."""
    cosine, warnings = await models.clip.cosine(item.image, item.prompt)
    details: HpsV2Details = {"cosine": cosine}
    return Score(cosine, details, warnings=warnings)


metric = Metric(
    "hpsv2",
    hpsv2,
    options=HpsV2Options,
    details=HpsV2Details,
    roles=("clip",),
    demand_of=cosine_demand,
    range=(-1, 1),
    formula="cos(E_image, E_prompt)",
    paper="Wu et al. 2023, arXiv 2306.09341",
    own_model=True,
    weights=HPSV2,
)
