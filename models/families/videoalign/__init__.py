"""VideoAlign (Liu et al. 2025): visual quality, motion quality and text alignment of a video."""

from models.core.family import Family
from models.core.settings import TunedSettings

REPOSITORY = "KwaiVGI/VideoReward"
BASE = "Qwen/Qwen2-VL-2B-Instruct"

FAMILY = Family(
    "videoalign",
    role="videoalign",
    settings=TunedSettings,
    loader="models.families.videoalign.model:from_settings",
    weights="models.families.videoalign.model:weights_files",
    repositories={REPOSITORY: {}},
)
