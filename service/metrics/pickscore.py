"""PickScore (Kirstain et al. 2023, "Pick-a-Pic"): a CLIP trained on which of two images people chose."""

from service.metrics.base import Item, Models, Score
from service.schemas import PickScoreOptions


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
