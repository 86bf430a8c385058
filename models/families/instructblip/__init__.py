"""InstructBLIP (Dai et al. 2023) and BLIP-2 (Li et al. 2023) with a FlanT5, in the role `vqa`."""

from models.core.family import Family
from models.core.settings import LocalSettings

FAMILY = Family(
    "instructblip",
    role="vqa",
    settings=LocalSettings,
    loader="models.families.instructblip.model:from_settings",
    weights="models.families.instructblip.model:weights",
)
