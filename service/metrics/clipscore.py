"""CLIPScore (Hessel et al. 2021) as text-to-image papers use it."""

from typing import Literal

from service.metrics.contract import Item, Metric, MetricOptions, Score
from service.metrics.models import Models


class ClipScoreOptions(MetricOptions):
    """Options of `clipscore`."""

    scale: Literal["cosine", "hessel"] = "cosine"


async def clipscore(item: Item, models: Models, options: ClipScoreOptions) -> Score:
    """
    cos(E_image, E_prompt), as VQAScore's authors compute it (t2v_metrics, open_clip).

    `scale: "hessel"` gives the original 2.5 * max(cos, 0).
    """
    cosine, warnings = await models.clip.cosine(item.image, item.prompt)
    value = 2.5 * max(cosine, 0.0) if options.scale == "hessel" else cosine
    return Score(value, {"cosine": cosine, "scale": options.scale}, warnings=warnings)


metric = Metric(
    "clipscore",
    clipscore,
    options=ClipScoreOptions,
    roles=("clip",),
    range=(-1, 1),
    paper="Hessel et al. 2021, arXiv 2104.08718",
)
