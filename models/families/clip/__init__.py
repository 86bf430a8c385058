"""
CLIP (Radford et al. 2021) through open_clip, in the role `clip`.

The model is loaded from the first of these that fits:

* a directory with `open_clip_config.json`: open_clip's own format; requests: none
* a directory with `config.json` of `model_type` `clip`: the format of transformers; CLIP's tokenizer and
  processor if there is none; requests: none
* an architecture of open_clip, with `pretrained`: a tag, or a file of weights (a tokenizer, if needed, from
  the hub's local cache); requests: with a tag
* a hub id, `owner/name` or `hf-hub:owner/name`: configuration, tokenizer and one file of weights of the
  repository at `revision`, in either format; requests: yes

```toml
[models.clip]
family = "open_clip"
model = "ViT-L-14-quickgelu"
pretrained = "openai"
```

This is the CLIP of t2v_metrics' CLIPScore. OpenAI's weights need QuickGELU: `ViT-L-14` with `openai` is
rejected. A file of weights cannot be checked.

A `size` with height and width squashes a picture, one with `shortest_edge` crops it. A picture whose longer
side is more than 64 times the shorter is cropped to its centre first.

**PickScore and HPS v2**

Both are ViT-H/14 (tables, formulas). `yuvalkirstain/PickScore_v1` is in the format of transformers. HPS v2
is a file of weights for `ViT-H-14`, `HPS_v2_compressed.pt` or `HPS_v2.1_compressed.pt` of `xswu/HPSv2`: a
path, or `hf-hub:xswu/HPSv2@COMMIT/HPS_v2.1_compressed.pt`. Without `@COMMIT` the newest one is loaded, with
a warning.
"""

from typing import Literal

from pydantic import Field

from models.checkpoints.files import OPEN_CLIP_CONFIG
from models.core.family import Family, Signs
from models.core.settings import LocalSettings

PICKSCORE = "yuvalkirstain/PickScore_v1"
HPSV2 = "xswu/HPSv2"

# A repository may hold the same weights several times; the first that exists is fetched.
CLIP_HUB_WEIGHTS = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")  # open_clip's own on a hub
CLIP_FETCHED_WEIGHTS = (*CLIP_HUB_WEIGHTS, "model*.safetensors", "pytorch_model*.bin")
CLIP_FETCHED = tuple(("*.json", "*.txt", "*.model", weights) for weights in CLIP_FETCHED_WEIGHTS)


class ClipSettings(LocalSettings):
    """A CLIP by open_clip's name, in a directory, or on the hub."""

    model: str = Field(
        "", description="The name of an architecture, a directory, or a hub id; overrides `checkpoint`."
    )
    pretrained: str | None = Field(
        None,
        description="For an architecture: open_clip's tag, or a file of weights, also "
        "`hf-hub:OWNER/NAME@COMMIT/FILE`.",
    )
    resize_mode: Literal["shortest", "longest", "squash"] | None = Field(
        None,
        description="`shortest`: scale the shorter side and crop. `longest`: scale the longer side and pad. "
        "`squash`: change the aspect ratio. Not set: the checkpoint's.",
    )

    @property
    def is_demo(self) -> bool:
        """True for a shipped checkpoint in either setting."""
        return (self.model or self.checkpoint).startswith("demo:")


FAMILY = Family(
    "open_clip",
    role="clip",
    loads="a model of open_clip by name, a hub id, or a directory in the format of open_clip or transformers",
    settings=ClipSettings,
    loader="models.families.clip.model:from_settings",
    planner="models.families.clip.source:plan",
    repositories={
        PICKSCORE: {},
        HPSV2: {
            "model": "ViT-H-14",
            "pretrained": f"hf-hub:{HPSV2}@697403c78157020a1ae59d23f111aa58ced35b0a/HPS_v2.1_compressed.pt",
            "resize_mode": "longest",
            "id": "hps-v2.1",
        },
    },
    library="models.families.clip.source:settings_of",
    fetched=CLIP_FETCHED,
    exact=True,
    signs=Signs(files=(OPEN_CLIP_CONFIG,), model_types=("clip",)),
)
