"""
VideoAlign (Liu et al. 2025): visual quality, motion quality and text alignment of a video.

The checkpoint is `KwaiVGI/VideoReward`, or a directory with `model_config.json` and
`checkpoint-N/model.pth`, of which the largest N is read. The base model is Qwen2-VL-2B. Licence of the
released code: MIT. Compared with the the released classes at commit 219ab9d, with transformers 4.45.2 and
peft 0.10.0.

```toml
[models.videoalign]
family = "videoalign"
checkpoint = "KwaiVGI/VideoReward"
device = "cuda:0"
dtype = "bfloat16"

[metrics]
videoalign = { model = "videoalign" }
```
"""

from models.core.family import Family
from models.core.settings import TunedSettings

REPOSITORY = "KwaiVGI/VideoReward"

FAMILY = Family(
    "videoalign",
    role="videoalign",
    loads="VideoAlign in its published layout",
    settings=TunedSettings,
    loader="models.families.videoalign.model:from_settings",
    weights="models.families.videoalign.model:weights_files",
    repositories={REPOSITORY: {}},
    base="Qwen/Qwen2-VL-2B-Instruct",
)
