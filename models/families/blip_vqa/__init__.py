"""BLIP for visual question answering (Li et al. 2022), in the role `vqa`."""

from models.core.family import Family, Signs
from models.core.settings import LocalSettings

FAMILY = Family(
    "blip_vqa",
    role="vqa",
    settings=LocalSettings,
    loader="models.families.blip_vqa.model:from_settings",
    weights="models.families.blip_vqa.model:weights",
    signs=Signs(architectures=("BlipForQuestionAnswering",)),
)
