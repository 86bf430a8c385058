"""HPS v2 (Wu et al. 2023, "Human Preference Score v2"): a CLIP trained on how people ranked images."""

from service.metrics.base import Item, Models, Score
from service.schemas import HpsV2Options


async def hpsv2(item: Item, models: Models, options: HpsV2Options) -> Score:
    """cos(E_image, E_prompt) under HPS v2's weights, as the authors' package returns it."""
    cosine, warnings = await models.clip.cosine(item.image, item.prompt)
    return Score(cosine, {"cosine": cosine}, warnings=warnings)
