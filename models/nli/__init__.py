"""Models that say whether one text follows from another (NLI), in the role `nli`."""

from models.family import Family
from models.settings import LocalSettings

FAMILY = Family(
    "transformers_nli",
    role="nli",
    settings=LocalSettings,
    loader="models.nli.model:load",
    planner="models.nli.plan:plan",
)
