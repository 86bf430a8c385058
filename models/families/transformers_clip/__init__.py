"""
CLIPs that transformers computes, in the role `clip`: SigLIP, SigLIP 2 and ALIGN.

`transformers_clip` loads them in the format of transformers, by `model_type`:

* `siglip`: SigLIP (arXiv 2303.15343), and SigLIP 2 for square pictures; texts: in lower case; padded to the
  model's length (64 tokens for most), no mask
* `siglip2`: SigLIP 2 for pictures of any shape (arXiv 2502.14786); texts: likewise
* `align`: ALIGN (arXiv 2102.05918); texts: truncated at 64 tokens, with a warning; padded, with a mask

```toml
[models.clip]
family = "transformers_clip"
checkpoint = "google/siglip2-so400m-patch14-384"
device = "cuda:0"
```

A SigLIP in open_clip's format, or under open_clip's name for it (`ViT-SO400M-14-SigLIP-384`), needs
`open_clip`. Set thresholds anew.
"""

from models.core.family import Family, Signs
from models.core.settings import LocalSettings

FAMILY = Family(
    "transformers_clip",
    role="clip",
    loads="a SigLIP, SigLIP 2 or ALIGN",
    settings=LocalSettings,
    loader="models.families.transformers_clip.model:from_settings",
    weights="models.families.transformers_clip.model:weights",
    exact=True,
    signs=Signs(model_types=("siglip", "siglip2", "align")),
)
