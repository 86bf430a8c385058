"""CLIP-FlanT5, the VQA model of VQAScore (Lin et al. 2024), in the role `vqa`."""

from typing import Annotated

from pydantic import Field

from models.core.family import Family
from models.core.settings import NOT_IN_RECIPE, LocalSettings


class ClipFlanT5Settings(LocalSettings):
    """A checkpoint in the published layout."""

    compile: bool = Field(
        False, description="Run through torch.compile; first batches of a new size are slow."
    )
    features_mb: Annotated[int, NOT_IN_RECIPE] = Field(
        256, ge=0, description="Memory for features of images seen before, in MiB on the device."
    )


FAMILY = Family(
    "clip_flant5",
    role="vqa",
    settings=ClipFlanT5Settings,
    loader="models.families.clip_flant5.model:load",
    planner="models.families.clip_flant5.plan:plan",
    launch_ms=25,
)
