"""CLIP-FlanT5, the VQA model of VQAScore (Lin et al. 2024), in the role `vqa`."""

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

    compile: bool = Field(False, description="Run through torch.compile, at the start.")
    graph_rows: int = Field(
        0, ge=0, description="Most rows of a batch that runs as a CUDA graph, on a GPU; 0 for no graphs."
    )
    features_mb: Annotated[int, NOT_IN_RECIPE] = Field(
        256, ge=0, description="Memory for features of images seen before, in MiB on the device."
    )


FAMILY = Family(
    "clip_flant5",
    role="vqa",
    settings=ClipFlanT5Settings,
    loader="models.families.clip_flant5.model:from_settings",
    planner="models.families.clip_flant5.layout:plan",
    repositories={name: {} for name in PUBLISHED_MODELS},
    signs=Signs(keys=("mm_projector_type",), model_types=("clip_t5",)),
)
