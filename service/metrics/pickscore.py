"""PickScore (Kirstain et al. 2023, "Pick-a-Pic"): a CLIP trained on which of two images people chose."""

from typing import Literal

from service.metrics.contract import Item, Metric, MetricOptions, Score
from service.metrics.models import Models


class PickScoreOptions(MetricOptions):
    """Options of `pickscore`."""

    scale: Literal["cosine", "logit"] = "cosine"


async def pickscore(item: Item, models: Models, options: PickScoreOptions) -> Score:
    """
    cos(E_image, E_prompt) under PickScore's weights, as VQAScore's authors compute it (t2v_metrics).

    `scale: "logit"` multiplies by exp(logit_scale) of the checkpoint, as the authors' own code does;
    a softmax of that over the candidates of a prompt is the probability that people choose each.
    """
    cosine, warnings = await models.clip.cosine(item.image, item.prompt)
    scale = models.clip.logit_scale
    value = scale * cosine if options.scale == "logit" else cosine
    details = {"cosine": cosine, "logit_scale": scale, "scale": options.scale}
    return Score(value, details, warnings=warnings)


metric = Metric(
    "pickscore",
    pickscore,
    options=PickScoreOptions,
    roles=("clip",),
    range=(-1, 1),
    paper="Kirstain et al. 2023, arXiv 2305.01569",
    own_model=True,
)
