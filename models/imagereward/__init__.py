"""ImageReward (Xu et al. 2023): how much people like an image for a prompt, in the role `imagereward`."""

from models.family import Family
from models.settings import LocalSettings

FAMILY = Family(
    "imagereward",
    role="imagereward",
    settings=LocalSettings,
    loader="models.imagereward.model:load",
    planner="models.imagereward.plan:plan",
)
