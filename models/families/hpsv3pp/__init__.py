"""
HPSv3++ (Liu et al. 2026): HPSv3 for generators of any capability, also in training by rewards.

The checkpoint is `Junjun2333/HPSv3-PlusPlus`, or a directory with `hpsv3++.safetensors` or `hpsv3++.pth`.
The base model is Qwen3-VL-8B. Licence of the released code: none stated. Compared with the the released
classes, with transformers 5.23.

```toml
[models.hpsv3pp]
family = "hpsv3pp"
checkpoint = "Junjun2333/HPSv3-PlusPlus"
device = "cuda:0"
dtype = "bfloat16"

[metrics]
hpsv3pp = { model = "hpsv3pp" }
```
"""

from models.core.family import Family
from models.core.settings import TunedSettings

REPOSITORY = "Junjun2333/HPSv3-PlusPlus"

FAMILY = Family(
    "hpsv3pp",
    role="hpsv3pp",
    loads="HPSv3++ in its published layout",
    settings=TunedSettings,
    loader="models.families.hpsv3pp.model:from_settings",
    weights="models.families.hpsv3pp.model:weights_files",
    repositories={REPOSITORY: {}},
    base="Qwen/Qwen3-VL-8B-Instruct",
)
