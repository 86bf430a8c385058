"""HPS v2 (Wu et al. 2023, "Human Preference Score v2"): a CLIP trained on how people ranked images."""

from service.metrics.contract import Item, Metric, MetricOptions, Score
from service.metrics.models import Models


class HpsV2Options(MetricOptions):
    """Options of `hpsv2`."""


async def hpsv2(item: Item, models: Models, options: HpsV2Options) -> Score:
    """cos(E_image, E_prompt) under HPS v2's weights, as the authors' package returns it."""
    cosine, warnings = await models.clip.cosine(item.image, item.prompt)
    return Score(cosine, {"cosine": cosine}, warnings=warnings)


metric = Metric(
    "hpsv2",
    hpsv2,
    options=HpsV2Options,
    roles=("clip",),
    range=(-1, 1),
    paper="Wu et al. 2023, arXiv 2306.09341",
    own_model=True,
)
