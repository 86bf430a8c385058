"""EditReward (Wu et al. 2026): how well an edit follows its instruction, and its quality."""

from models.core.family import Family
from models.core.settings import TunedSettings

REPOSITORY = "TIGER-Lab/EditReward-Qwen2.5-7B-VL"
BASE = "Qwen/Qwen2.5-VL-7B-Instruct"

FAMILY = Family(
    "editreward",
    role="editreward",
    settings=TunedSettings,
    loader="models.families.editreward.model:from_settings",
    weights="models.families.editreward.model:weights_files",
    repositories={REPOSITORY: {}},
)
