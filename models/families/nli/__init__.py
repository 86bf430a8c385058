"""Models that predict whether one text follows from another (NLI), in the role `nli`."""

from models.core.family import Family, Signs
from models.core.settings import LocalSettings

FAMILY = Family(
    "transformers_nli",
    role="nli",
    settings=LocalSettings,
    loader="models.families.nli.model:from_settings",
    weights="models.checkpoints.files:safetensors_files",
    signs=Signs(architectures=("ForSequenceClassification",)),
)
