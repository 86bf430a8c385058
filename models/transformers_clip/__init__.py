"""CLIPs that transformers computes, in the role `clip`: SigLIP, SigLIP 2 and ALIGN."""

from models.family import Family
from models.settings import LocalSettings

FAMILY = Family(
    "transformers_clip",
    role="clip",
    settings=LocalSettings,
    loader="models.transformers_clip.model:load",
    planner="models.transformers_clip.plan:plan",
)
