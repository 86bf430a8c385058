"""CLIP (Radford et al. 2021) through open_clip, in the role `clip`."""

from typing import Literal

from pydantic import Field

from models.checkpoints.files import OPEN_CLIP_CONFIG
from models.core.family import Family, Signs
from models.core.settings import LocalSettings

PICKSCORE = "yuvalkirstain/PickScore_v1"
HPSV2 = "xswu/HPSv2"


class ClipSettings(LocalSettings):
    """A CLIP by open_clip's name, in a directory, or on the hub."""

    model: str = Field(
        "", description="A name of open_clip, a directory or a hub id; overrides `checkpoint`."
    )
    pretrained: str | None = Field(
        None, description="With such a name: the weights' tag, a file, or `hf-hub:OWNER/NAME@COMMIT/FILE`."
    )
    resize_mode: Literal["shortest", "longest", "squash"] | None = Field(
        None, description="How a picture becomes a square; the checkpoint's way by default."
    )

    @property
    def is_demo(self) -> bool:
        """True for a shipped checkpoint in either setting."""
        return (self.model or self.checkpoint).startswith("demo:")


FAMILY = Family(
    "open_clip",
    role="clip",
    settings=ClipSettings,
    loader="models.families.clip.model:from_settings",
    planner="models.families.clip.source:plan",
    repositories={
        PICKSCORE: {},
        HPSV2: {
            "model": "ViT-H-14",
            "pretrained": f"hf-hub:{HPSV2}@697403c78157020a1ae59d23f111aa58ced35b0a/HPS_v2.1_compressed.pt",
            "resize_mode": "longest",
            "id": "hps-v2.1",
        },
    },
    signs=Signs(files=(OPEN_CLIP_CONFIG,), model_types=("clip",)),
)
