"""Models that find objects in images, in the role `detector`."""

from pydantic import Field

from models.core.family import Family, Signs
from models.core.settings import LocalSettings


class Owlv2Settings(LocalSettings):
    """Settings of an OWLv2 detector."""

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
    loader="models.families.detector.mask2former:from_settings",
    weights="models.families.detector.mask2former:weights",
    signs=Signs(model_types=("mask2former",)),
)
OWLV2 = Family(
    "owlv2",
    role="detector",
    settings=Owlv2Settings,
    loader="models.families.detector.owlv2:from_settings",
    weights="models.families.detector.owlv2:weights",
    signs=Signs(model_types=("owlv2",)),
)
