"""CLIPScore (Hessel et al. 2021) as text-to-image papers use it."""

from typing import Literal

from typing_extensions import TypedDict

from service.metrics.contract import Item, Metric, MetricOptions, Score
from service.metrics.models import Models, cosine_demand


class ClipScoreOptions(MetricOptions):
    """Options of `clipscore`."""

    scale: Literal["cosine", "hessel"] = "cosine"


class ClipScoreDetails(TypedDict):
    """What a `clipscore` is made of."""

    cosine: float
    scale: str


async def clipscore(item: Item, models: Models, options: ClipScoreOptions) -> Score:
    """
    cos(E_image, E_prompt), as VQAScore's authors compute it (t2v_metrics, open_clip).

    `scale: "hessel"` gives the original 2.5 * max(cos, 0).
    """
    cosine, warnings = await models.clip.cosine(item.image, item.prompt)
    value = 2.5 * max(cosine, 0.0) if options.scale == "hessel" else cosine
    details: ClipScoreDetails = {"cosine": cosine, "scale": options.scale}
    return Score(value, details, warnings=warnings)


metric = Metric(
    "clipscore",
    clipscore,
    options=ClipScoreOptions,
    details=ClipScoreDetails,
    roles=("clip",),
    demand_of=cosine_demand,
    range=(-1, 1),
    range_of=lambda options: (0, 2.5) if options.scale == "hessel" else (-1, 1),
    formula="cos(E_image, E_prompt)",
    paper="Hessel et al. 2021, arXiv 2104.08718",
)
