"""PAL4VST (Zhang et al. 2023): which pixels of an image are artifacts, in the role `artifact`."""

from models.core.family import Family
from models.core.settings import LocalSettings

FAMILY = Family(
    "pal4vst",
    role="artifact",
    settings=LocalSettings,
    loader="models.families.artifact.model:from_settings",
    weights="models.families.artifact.model:weights_files",
)
