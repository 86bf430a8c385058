"""
Image-text matching of BLIP (Li et al. 2022) and BLIP-2 (Li et al. 2023), in the role `itm`.

```toml
[models.itm]
family = "blip_itm"
checkpoint = "Salesforce/blip2-itm-vit-g-coco"
dtype = "float32"
```

`itmscore` needs a BLIP (`BlipForImageTextRetrieval`, such as `Salesforce/blip-itm-large-coco`) or a BLIP-2
of the first stage (`Blip2ForImageTextRetrieval`). With `bfloat16` only the vision tower is rounded.
"""

from models.core.family import Family, Signs
from models.core.settings import LocalSettings

FAMILY = Family(
    "blip_itm",
    role="itm",
    loads="a BLIP or BLIP-2 for image-text retrieval",
    settings=LocalSettings,
    loader="models.families.blip_itm.model:from_settings",
    weights="models.families.blip_itm.model:weights",
    signs=Signs(architectures=("ForImageTextRetrieval",)),
)
