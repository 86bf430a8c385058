"""
Geometries: the sizes of the networks and of the measurements, real for a GPU and tiny for a CPU.

The real ones are those that the checkpoints are published with.  The tiny ones run every line in seconds and
measure nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.families.clip_flant5 import FLAN_T5, XL, XXL
from models.families.clip_flant5.layout import VIT_L_14_336

Config = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Geometry:
    """
    Sizes of networks and measurements.

    Attributes:
        flant5: configurations of T5 and the vision tower, by the size's name; the first is the one that is
            served.
        decoders: configuration of each decoder VLM by name, and the side of its pictures.
        encoders: configuration of each CLIP and reward model by name, as transformers' classes take it.
        served: likewise, of each model that vLLM serves.
        matrix, copy_mb: of the limits.
        pairs, questions: pictures in a batch of CLIP-FlanT5, and questions about each.
        batches: pairs in a batch of the sweep.
        images: pictures in a batch of an encoder.
        most_rows: where the search for the largest batch ends.
        burst: single requests at once, also in a batch of the offline run.
        alone: single requests one after the other, for latencies.
        image: kind of `loadtest.corpus`.
        rounds: of each timing; its figure is their median.
    """

    flant5: Mapping[str, tuple[Config, Config]]
    encoders: Mapping[str, Config]
    decoders: Mapping[str, Config]
    served: Mapping[str, Config]
    matrix: int
    copy_mb: int
    pairs: tuple[int, ...]
    questions: tuple[int, ...]
    batches: tuple[int, ...]
    images: tuple[int, ...]
    most_rows: int
    burst: int
    alone: int
    image: str
    rounds: int


def layers(hidden: int, inner: int, number: int, heads: int) -> Config:
    """Return the names that transformers has for the sizes of a stack."""
    return {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": number,
        "num_attention_heads": heads,
    }


CLIP_L, CLIP_H, SIGLIP = "CLIP L/14-336", "CLIP H/14 (HPSv2, PickScore)", "SigLIP 2 so400m"
IMAGEREWARD, ITM, DETECTOR = "ImageReward", "BLIP-2 ITM", "Mask2Former"
QUESTION_LLM, VLM, DECODER = "Qwen2.5 7B", "LLaVA 1.5 7B", "Qwen3-VL 8B"
MROPE = {"rope_type": "default", "rope_theta": 5_000_000.0, "mrope_interleaved": True}
BERT = {"vocab_size": 30_524, "max_position_embeddings": 512}

REAL = Geometry(
    flant5={"XL": (XL.config, VIT_L_14_336), "XXL": (XXL.config, VIT_L_14_336)},
    encoders={
        CLIP_L: {
            "projection_dim": 768,
            "text_config": layers(768, 3072, 12, 12) | {"hidden_act": "quick_gelu"},
            "vision_config": VIT_L_14_336,
        },
        CLIP_H: {
            "projection_dim": 1024,
            "text_config": layers(1024, 4096, 24, 16) | {"hidden_act": "gelu"},
            "vision_config": layers(1280, 5120, 32, 16) | {"patch_size": 14, "hidden_act": "gelu"},
        },
        SIGLIP: {
            "text_config": layers(1152, 4304, 27, 16) | {"vocab_size": 256_000},
            "vision_config": layers(1152, 4304, 27, 16) | {"image_size": 384, "patch_size": 14},
        },
        IMAGEREWARD: {
            "text_config": layers(768, 3072, 12, 12) | BERT,
            "vision_config": layers(1024, 4096, 24, 16) | {"image_size": 224, "patch_size": 16},
        },
        ITM: {
            "num_query_tokens": 32,
            "qformer_config": layers(768, 3072, 12, 12) | BERT | {"cross_attention_frequency": 2},
            "vision_config": layers(1408, 6144, 39, 16) | {"image_size": 224, "patch_size": 14},
        },
        DETECTOR: {
            "backbone_config": {"embed_dim": 96, "depths": [2, 2, 18, 2], "num_heads": [3, 6, 12, 24]},
            "side": 800,  # side of the pictures in pixels
        },
    },
    decoders={
        DECODER: {
            "text_config": layers(4096, 12_288, 36, 32)
            | {"num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151_936}
            | {"rope_parameters": MROPE | {"mrope_section": [24, 20, 20]}},
            "vision_config": {
                "depth": 27,
                "hidden_size": 1152,
                "intermediate_size": 4304,
                "num_heads": 16,
                "patch_size": 16,
                "out_hidden_size": 4096,
                "deepstack_visual_indexes": [8, 16, 24],
            },
            "side": 1024,
        },
    },
    served={
        QUESTION_LLM: layers(3584, 18_944, 28, 28)
        | {"num_key_value_heads": 4, "vocab_size": 152_064, "max_position_embeddings": 32_768},
        VLM: {
            "text_config": layers(4096, 11_008, 32, 32)
            | {"num_key_value_heads": 32, "vocab_size": 32_064, "max_position_embeddings": 4096},
            "vision_config": VIT_L_14_336,
        },
    },
    matrix=8192,
    copy_mb=1024,
    pairs=(1, 4, 16, 64),
    questions=(1, 8),
    batches=(1, 16, 32, 64, 128),
    images=(1, 16, 256),
    most_rows=8192,
    burst=512,
    alone=64,
    image="rl",
    rounds=5,
)

SMALL = layers(64, 64, 2, 1)
TINY_TOWER = SMALL | {"num_hidden_layers": 3, "image_size": 28, "patch_size": 14, "hidden_act": "quick_gelu"}
TINY_T5 = FLAN_T5 | {"num_layers": 2, "num_decoder_layers": 2, "vocab_size": 1600}
TINY_T5 |= {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_heads": 2}
TINY_VISION = SMALL | {"image_size": 28, "patch_size": 14, "hidden_act": "gelu"}
TINY_CLIP = {
    "projection_dim": 16,
    "text_config": SMALL | {"hidden_act": "gelu"},
    "vision_config": TINY_VISION,
}
WORDS = {"vocab_size": 200, "bos_token_id": 1, "eos_token_id": 2}
TINY_TEXT = layers(64, 128, 2, 2)
TINY_TEXT |= {"num_key_value_heads": 2, "vocab_size": 2048, "max_position_embeddings": 4096}
TINY_BERT = SMALL | WORDS | {"max_position_embeddings": 64}

TINY = Geometry(
    flant5={"XL": (TINY_T5, TINY_TOWER), "XXL": (TINY_T5, TINY_TOWER)},
    encoders={
        CLIP_L: TINY_CLIP,
        CLIP_H: TINY_CLIP,
        SIGLIP: {"text_config": SMALL | WORDS, "vision_config": TINY_VISION},
        IMAGEREWARD: {"text_config": TINY_BERT, "vision_config": TINY_VISION},
        ITM: {
            "num_query_tokens": 4,
            "qformer_config": TINY_BERT | {"cross_attention_frequency": 2},
            "vision_config": TINY_VISION,
        },
        DETECTOR: {
            "backbone_config": {"embed_dim": 12, "depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2]},
            "side": 64,
            "num_queries": 4,
            "encoder_layers": 1,
            "decoder_layers": 2,
            "encoder_feedforward_dim": 32,
            "dim_feedforward": 32,
        },
    },
    decoders={
        DECODER: {
            "text_config": TINY_TEXT
            | {"head_dim": 16, "rope_parameters": MROPE | {"mrope_section": [2, 3, 3]}},
            "vision_config": {
                "depth": 2,
                "hidden_size": 32,
                "intermediate_size": 32,
                "num_heads": 2,
                "patch_size": 16,
                "out_hidden_size": 64,
                "deepstack_visual_indexes": [0],
                "num_position_embeddings": 16,
            },
            "side": 64,
        },
    },
    served={
        QUESTION_LLM: TINY_TEXT,
        VLM: {"text_config": TINY_TEXT, "vision_config": TINY_VISION},
    },
    matrix=256,
    copy_mb=8,
    pairs=(1, 16),
    questions=(1, 8),
    batches=(1, 4),
    images=(1, 4),
    most_rows=8,
    burst=16,
    alone=8,
    image="tiny",
    rounds=2,
)
