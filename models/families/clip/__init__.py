"""CLIP (Radford et al. 2021) through open_clip, in the role `clip`."""

from typing import Literal

from pydantic import Field

from models.core.family import Family
from models.core.settings import LocalSettings


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
)
