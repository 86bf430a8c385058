"""Models that find objects in images, in the role `detector`."""

from pydantic import Field

from models.family import Family
from models.settings import LocalSettings


class Owlv2Settings(LocalSettings):
    """An OWLv2."""

    max_overlap: float = Field(
        0.5,
        gt=0,
        le=1,
        description="Of boxes of one label that overlap more (IoU), the surest stays; 1 keeps all.",
    )


MASK2FORMER = Family(
    "mask2former",
    role="detector",
    settings=LocalSettings,
    loader="models.detector.mask2former:load",
    planner="models.detector.plan:plan_mask2former",
)
OWLV2 = Family(
    "owlv2",
    role="detector",
    settings=Owlv2Settings,
    loader="models.detector.owlv2:load",
    planner="models.detector.plan:plan_owlv2",
)
