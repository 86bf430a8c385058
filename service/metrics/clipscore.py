"""CLIPScore (Hessel et al. 2021) as text-to-image papers use it."""

from service.metrics.base import Item, Models, Score
from service.schemas import ClipScoreOptions


async def clipscore(item: Item, models: Models, options: ClipScoreOptions) -> Score:
    """
    cos(E_image, E_prompt), as VQAScore's authors compute it (t2v_metrics, open_clip).

    `scale: "hessel"` gives the original 2.5 * max(cos, 0).
    """
    cosine, warnings = await models.clip.cosine(item.image, item.prompt)
    value = 2.5 * max(cosine, 0.0) if options.scale == "hessel" else cosine
    return Score(value, {"cosine": cosine, "scale": options.scale}, warnings=warnings)
