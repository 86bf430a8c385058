"""ImageReward (Xu et al. 2023): how much people like an image for a prompt, in the role `imagereward`."""

from models.core.family import Family
from models.core.settings import LocalSettings

REPOSITORY = "THUDM/ImageReward"
TOKENIZER_REPOSITORY = "google-bert/bert-base-uncased"

FAMILY = Family(
    "imagereward",
    role="imagereward",
    settings=LocalSettings,
    loader="models.families.imagereward.model:from_settings",
    weights="models.families.imagereward.model:weights_files",
    repositories={REPOSITORY: {}},
)
