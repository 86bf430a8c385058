"""A model that grades in the demo world, in the role `vqa`: by the yes or no of a CLIP-FlanT5."""

from models.core.family import Family
from models.core.settings import LocalSettings

FAMILY = Family(
    "demo_grader",
    role="vqa",
    settings=LocalSettings,
    loader="models.families.demo_grader.model:from_settings",
    planner="models.families.clip_flant5.layout:plan",
)
