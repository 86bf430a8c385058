"""
LAION's aesthetic predictors, in the role `aesthetic`: how beautiful a picture is, whatever it shows.

```toml
[models.aesthetic]
family = "aesthetic"
model = "ViT-L-14-quickgelu"
pretrained = "openai"
head = "/srv/models/sac+logos+ava1-l14-linearMSE.pth"
device = "cuda:0"

[metrics]
aesthetic = { model = "aesthetic" }
```

**An aesthetic predictor** is a CLIP with all settings of `open_clip`, and a file `head`. Both published
heads need OpenAI's ViT-L/14, which the service cannot check.
"""

from pydantic import Field

from models.core.family import Family
from models.families.clip import CLIP_FETCHED, ClipSettings

AESTHETIC = "trl-lib/ddpo-aesthetic-predictor"  # the head; the CLIP below it is OpenAI's


class AestheticSettings(ClipSettings):
    """A CLIP with a head."""

    head: str = Field(
        "",
        description="The file of the predictor's head, also `hf-hub:OWNER/NAME@COMMIT/FILE`. Required.",
    )


FAMILY = Family(
    "aesthetic",
    role="aesthetic",
    loads="a CLIP, as `open_clip` loads it, and the head of an aesthetic predictor of LAION",
    settings=AestheticSettings,
    loader="models.families.aesthetic.model:from_settings",
    planner="models.families.aesthetic.model:plan",
    fetched=CLIP_FETCHED,
    exact=True,
    repositories={
        AESTHETIC: {
            "model": "ViT-L-14-quickgelu",
            "pretrained": "openai",
            "head": f"hf-hub:{AESTHETIC}/aesthetic-model.pth",
        }
    },
)
