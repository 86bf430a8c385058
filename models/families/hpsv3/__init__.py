"""
HPSv3 (Ma et al. 2025): how much people like a picture for a prompt, as a mean and its uncertainty.

The checkpoint is `MizzenAI/HPSv3`, or a directory with `HPSv3.safetensors` or `HPSv3.pth`. The base model
is Qwen2-VL-7B. Licence of the released code: MIT. Compared with the package `hpsv3` 1.0.0, with
transformers 4.45.2.

```toml
[models.hpsv3]
family = "hpsv3"
checkpoint = "MizzenAI/HPSv3"
device = "cuda:0"
dtype = "bfloat16"

[metrics]
hpsv3 = { model = "hpsv3" }
```
"""

from models.core.family import Family
from models.core.settings import TunedSettings

REPOSITORY = "MizzenAI/HPSv3"

FAMILY = Family(
    "hpsv3",
    role="hpsv3",
    loads="HPSv3 in its published layout",
    settings=TunedSettings,
    loader="models.families.hpsv3.model:from_settings",
    weights="models.families.hpsv3.model:weights_files",
    repositories={REPOSITORY: {}},
    base="Qwen/Qwen2-VL-7B-Instruct",
)
