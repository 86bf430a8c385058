"""
EditReward (Wu et al. 2026): how well an edit follows its instruction, and its quality.

The checkpoint is `TIGER-Lab/EditReward-Qwen2.5-7B-VL`, or a directory with `model.pth` or
`model.safetensors`. The base model is Qwen2.5-VL-7B; for a MiMo-VL set `base`. Licence of the released
code: MIT. Compared with the the released classes at commit edb027e, with transformers 4.57.0.

```toml
[models.editreward]
family = "editreward"
checkpoint = "TIGER-Lab/EditReward-Qwen2.5-7B-VL"
device = "cuda:0"
dtype = "bfloat16"

[metrics]
editreward = { model = "editreward" }
```
"""

from models.core.family import Family
from models.core.settings import TunedSettings

REPOSITORY = "TIGER-Lab/EditReward-Qwen2.5-7B-VL"

FAMILY = Family(
    "editreward",
    role="editreward",
    loads="EditReward in its published layout",
    settings=TunedSettings,
    loader="models.families.editreward.model:from_settings",
    weights="models.families.editreward.model:weights_files",
    repositories={REPOSITORY: {}},
    base="Qwen/Qwen2.5-VL-7B-Instruct",
)
