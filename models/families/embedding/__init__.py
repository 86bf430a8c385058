"""Models that embed sentences, in the role `embedding`."""

from models.core.family import Family
from models.core.settings import LocalSettings

FAMILY = Family(
    "sentence_transformer",
    role="embedding",
    settings=LocalSettings,
    loader="models.families.embedding.model:from_settings",
    weights="models.checkpoints.files:safetensors_files",
)
MAX_TOKENS = 512  # a longer text is cut
