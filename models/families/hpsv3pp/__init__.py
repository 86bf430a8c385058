"""HPSv3++ (Liu et al. 2026): HPSv3 for generators of any capability, also in training by rewards."""

from models.core.family import Family
from models.core.settings import TunedSettings

REPOSITORY = "Junjun2333/HPSv3-PlusPlus"
BASE = "Qwen/Qwen3-VL-8B-Instruct"

FAMILY = Family(
    "hpsv3pp",
    role="hpsv3pp",
    settings=TunedSettings,
    loader="models.families.hpsv3pp.model:from_settings",
    weights="models.families.hpsv3pp.model:weights_files",
    repositories={REPOSITORY: {}},
)
