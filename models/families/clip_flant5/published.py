"""Sizes of the published CLIP-FlanT5s, for a plan before a download."""

from dataclasses import dataclass
from typing import Any

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

PUBLISHED = {"zhiqiulin/clip-flant5-xl": XL, "zhiqiulin/clip-flant5-xxl": XXL}
