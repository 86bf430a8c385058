"""HPSv3 (Ma et al. 2025): how much people like an image for a prompt, as a mean and its uncertainty."""

from models.core.family import Family
from models.core.settings import TunedSettings

REPOSITORY = "MizzenAI/HPSv3"
BASE = "Qwen/Qwen2-VL-7B-Instruct"

FAMILY = Family(
    "hpsv3",
    role="hpsv3",
    settings=TunedSettings,
    loader="models.families.hpsv3.model:from_settings",
    weights="models.families.hpsv3.model:weights_files",
    repositories={REPOSITORY: {}},
)
