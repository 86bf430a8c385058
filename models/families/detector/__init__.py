"""
Models that find objects in pictures, in the role `detector`.

```toml
[models.detector]
family = "mask2former"
checkpoint = "facebook/mask2former-swin-small-coco-instance"
device = "cuda:0"

[models.detector.batch]
max_items = 4
```

`geneval` needs a detector of one of two families:

* **`mask2former`** detects the classes of its checkpoint; for GenEval, one for instance segmentation on
  COCO.
* **`owlv2`** detects objects by text (Minderer et al. 2023). It has no masks: prompts with colours are
  `no_masks`.

Pictures are first scaled down to 2,048 pixels on the longer side; above an aspect ratio of 16 they are
`call_refused`. In float32, a Mask2Former with Swin-S has 0.3 GB of weights, an OWLv2 of base size 0.6 GB.
"""

from pydantic import Field

from models.core.family import Family, Signs
from models.core.settings import LocalSettings


class Owlv2Settings(LocalSettings):
    """Settings of an OWLv2 detector."""

    max_overlap: float = Field(
        0.5,
        gt=0,
        le=1,
        description="Of boxes of one label with a larger intersection over union, the most confident one is "
        "kept.",
    )


MASK2FORMER = Family(
    "mask2former",
    role="detector",
    loads="a Mask2Former for instance segmentation: certain classes, with masks",
    settings=LocalSettings,
    loader="models.families.detector.mask2former:from_settings",
    weights="models.families.detector.mask2former:weights",
    signs=Signs(model_types=("mask2former",)),
)
OWLV2 = Family(
    "owlv2",
    role="detector",
    loads="an OWLv2: any objects, boxes without masks",
    settings=Owlv2Settings,
    loader="models.families.detector.owlv2:from_settings",
    weights="models.families.detector.owlv2:weights",
    signs=Signs(model_types=("owlv2",)),
)
