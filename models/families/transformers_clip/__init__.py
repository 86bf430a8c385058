"""CLIPs that transformers computes, in the role `clip`: SigLIP, SigLIP 2 and ALIGN."""

from models.core.family import Family, Signs
from models.core.settings import LocalSettings

FAMILY = Family(
    "transformers_clip",
    role="clip",
    settings=LocalSettings,
    loader="models.families.transformers_clip.model:from_settings",
    weights="models.families.transformers_clip.model:weights",
    signs=Signs(model_types=("siglip", "siglip2", "align")),
)
