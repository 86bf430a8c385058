"""
PAL4VST (Zhang et al. 2023): which pixels of a picture are artifacts, in the role `artifact`.

```toml
[models.artifact]
family = "pal4vst"
checkpoint = "/srv/models/pal4vst"
```

The folder has PAL4VST's PyTorch checkpoint, not the TorchScript. If it holds more than tensors, save its
`state_dict` alone on a machine that you trust.
"""

from models.core.family import Family
from models.core.settings import LocalSettings

FAMILY = Family(
    "pal4vst",
    role="artifact",
    loads="a UPerNet on a Swin in MMSegmentation's format, with two classes",
    settings=LocalSettings,
    loader="models.families.artifact.model:from_settings",
    weights="models.families.artifact.model:weights_files",
)
