"""
ImageReward (Xu et al. 2023): how much people like a picture for a prompt, in the role `imagereward`.

```toml
[models.imagereward]
family = "imagereward"
checkpoint = "THUDM/ImageReward"
device = "cuda:0"

[metrics]
imagereward = { model = "imagereward" }
```

**ImageReward** is `THUDM/ImageReward`, for which BERT's tokenizer is downloaded, or a directory with
`ImageReward.pt` (or its tensors as `ImageReward.safetensors`), `med_config.json`, and `tokenizer.json` or
`vocab.txt`. Its 447 million parameters take 1.8 GB in float32, 0.9 GB in bfloat16 (with the head in float32).
"""

from models.core.family import Family
from models.core.settings import LocalSettings

REPOSITORY = "THUDM/ImageReward"

FAMILY = Family(
    "imagereward",
    role="imagereward",
    loads="ImageReward in its published layout",
    settings=LocalSettings,
    loader="models.families.imagereward.model:from_settings",
    weights="models.families.imagereward.model:weights_files",
    repositories={REPOSITORY: {}},
    exact=True,
    base="google-bert/bert-base-uncased",
)
