"""
CLIP-FlanT5, the VQA model of VQAScore (Lin et al. 2024), in the role `vqa`.

`zhiqiulin/clip-flant5-xl` and `zhiqiulin/clip-flant5-xxl` on the hub, or a directory with `config.json`,
`spiece.model`, optionally `tokenizer_config.json`, and `model.safetensors` or `pytorch_model.bin`, whole or
sharded. Another vision tower than `openai/clip-vit-large-patch14-336`, also in the weights, is described in
`vision_tower/` by `config.json` and `preprocessor_config.json` (or `processor_config.json`).

Missing or unexpected tensors, and another projector than `mlp2x_gelu`, end the start.

To try a checkpoint without a profile, override the demo profile:

```
export SCOREGATE_MODELS__VQA__CHECKPOINT=/srv/models/clip-flant5-xl
export SCOREGATE_MODELS__VQA__ID=clip-flant5-xl
export SCOREGATE_MODELS__VQA__REVISION=3b4a6b1
export SCOREGATE_MODELS__VQA__DEVICE=cuda:0
export SCOREGATE_MODELS__VQA__DTYPE=bfloat16
scoregate-server
```

Check the licence: CLIP-FlanT5's README says research-only, the hub's page Apache-2.0.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from models.core.family import Family, Signs
from models.core.settings import NOT_IN_RECIPE, LocalSettings

FLAN_T5 = {
    "d_kv": 64,
    "num_layers": 24,
    "num_decoder_layers": 24,
    "feed_forward_proj": "gated-gelu",
    "vocab_size": 32100,  # rows that are used
}


@dataclass(frozen=True, slots=True)
class Published:
    """The size of a checkpoint and the configuration of its T5; all have the same vision tower."""

    num_parameters: int
    config: dict[str, Any]


XL = Published(3_159_560_192, FLAN_T5 | {"d_model": 2048, "d_ff": 5120, "num_heads": 32})
XXL = Published(11_459_819_520, FLAN_T5 | {"d_model": 4096, "d_ff": 10240, "num_heads": 64})
# Their sizes are known before a download.
PUBLISHED_MODELS = {"zhiqiulin/clip-flant5-xl": XL, "zhiqiulin/clip-flant5-xxl": XXL}


class ClipFlanT5Settings(LocalSettings):
    """A checkpoint in the published layout."""

    compile: bool = Field(
        False, description="`torch.compile`, for GPUs. Compiles at the start, which logs the seconds."
    )
    graph_rows: int = Field(
        0,
        ge=0,
        description="Most rows (pictures, questions, answers) of a batch that runs as CUDA graphs; 0: none. "
        "For small batches, which wait for the host. Not yet measured.",
    )
    features_mb: Annotated[int, NOT_IN_RECIPE] = Field(
        256,
        ge=0,
        description="Memory on the device for features of recent pictures, 4.5 each with "
        "CLIP-FlanT5-XXL; 0: none.",
    )


FAMILY = Family(
    "clip_flant5",
    role="vqa",
    loads="CLIP-FlanT5 in its published layout",
    settings=ClipFlanT5Settings,
    loader="models.families.clip_flant5.model:from_settings",
    planner="models.families.clip_flant5.layout:plan",
    repositories={name: {} for name in PUBLISHED_MODELS},
    signs=Signs(keys=("mm_projector_type",), model_types=("clip_t5",)),
)
