"""Image-text matching of BLIP (Li et al. 2022) and BLIP-2 (Li et al. 2023), in the role `itm`."""

from models.core.family import Family, Signs
from models.core.settings import LocalSettings

FAMILY = Family(
    "blip_itm",
    role="itm",
    settings=LocalSettings,
    loader="models.families.blip_itm.model:from_settings",
    weights="models.families.blip_itm.model:weights",
    signs=Signs(architectures=("ForImageTextRetrieval",)),
)
