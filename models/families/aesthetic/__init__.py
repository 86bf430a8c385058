"""
LAION's aesthetic predictors, in the role `aesthetic`: how beautiful an image is, whatever it shows.

A head on the image embeddings of OpenAI's CLIP ViT-L/14.
"""

from pydantic import Field

from models.core.family import Family
from models.families.clip import ClipSettings

AESTHETIC = "trl-lib/ddpo-aesthetic-predictor"  # the head; the CLIP below it is OpenAI's


class AestheticSettings(ClipSettings):
    """A CLIP with a head."""

    head: str = Field(
        "",
        description="The file of the head, of version 2 (five layers) or 1 (one), `.pth` or `.safetensors`;"
        " also `hf-hub:OWNER/NAME@COMMIT/FILE`.",
    )


FAMILY = Family(
    "aesthetic",
    role="aesthetic",
    settings=AestheticSettings,
    loader="models.families.aesthetic.model:from_settings",
    planner="models.families.aesthetic.model:plan",
    repositories={
        AESTHETIC: {
            "model": "ViT-L-14-quickgelu",
            "pretrained": "openai",
            "head": f"hf-hub:{AESTHETIC}/aesthetic-model.pth",
        }
    },
)
