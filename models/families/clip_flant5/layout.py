"""
What a published CLIP-FlanT5 checkpoint says beside its weights, and how its tensors are called.

The layout is that of `zhiqiulin/clip-flant5-xl` and `-xxl`.  A setting that would change a score and
that this implementation does not have is refused, never passed over; what a file leaves out is what
the reference implementation takes for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import T5Config

from models.checkpoints.configuration import built, check_fixed, check_size, read_json
from models.checkpoints.files import CONFIG, PIECES, PREPROCESSOR, TOKENIZER_CONFIG, VISION_TOWER
from models.core.contract import CheckpointError
from models.families.clip_flant5.tokenizer import EOS, PAD, Tokenizer
from models.families.clip_flant5.tower import read_pixels, read_tower
from models.images.pixels import Pixels

# What decides a score, beside the weights.
FILES = (
    CONFIG,
    TOKENIZER_CONFIG,
    PIECES,
    f"{VISION_TOWER}/{CONFIG}",
    f"{VISION_TOWER}/{PREPROCESSOR}",
)

SIZES = ("vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_heads")

# The one value that each of these may have: T5's own defaults are others, so they must be there, ...
STATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
# ... and these may be left out.
FIXED = {
    "dense_act_fn": "gelu_new",
    "is_gated_act": True,
    "is_encoder_decoder": True,
    "pad_token_id": PAD,
    "eos_token_id": EOS,
    "decoder_start_token_id": PAD,
    "use_mm_proj": True,
    "mm_projector_type": "mlp2x_gelu",
    "mm_vision_select_feature": "patch",
    "mm_use_im_start_end": False,
    "mm_use_im_patch_token": False,
}
PADS = {"pad": True, "square": False, None: False}  # image_aspect_ratio

EMBEDDING = "shared.weight"
SHARED = (EMBEDDING, "embed_tokens.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
# Left by older tools: a buffer, and a bias that T5 never used.
UNUSED = ("position_ids", "EncDecAttention.relative_attention_bias.weight")


@dataclass(frozen=True, slots=True)
class Layout:
    """A checkpoint's T5 configuration, its vision tower's, its pixels and its pieces."""

    config: dict[str, Any]
    vision: dict[str, Any]
    pixels: Pixels
    tokenizer: Tokenizer


def read_layout(directory: Path) -> Layout:
    """
    Everything in *directory* but the weights; no request is made.

    Raises:
        CheckpointError: a file is missing or broken, the files contradict each other, or they ask
            for what is not implemented.
    """
    config = read_config(directory / CONFIG)
    vision = read_tower(directory / VISION_TOWER / CONFIG, config.get("mm_vision_tower"))
    layer, states = config.get("mm_vision_select_layer", -2), vision["num_hidden_layers"] + 1
    if type(layer) is not int or not -states <= layer < states:
        raise CheckpointError(
            f"{directory / CONFIG}: mm_vision_select_layer is {layer!r},"
            f" and the vision tower has {states} hidden states"
        )
    pad = PADS[config.get("image_aspect_ratio")]
    pixels = read_pixels(directory / VISION_TOWER / PREPROCESSOR, vision["image_size"], pad)
    tokenizer = Tokenizer(directory / PIECES, read_extra_ids(directory / TOKENIZER_CONFIG))
    if tokenizer.size > config["vocab_size"]:
        raise CheckpointError(
            f"{directory}: the tokenizer doesn't match: it has {tokenizer.size} pieces,"
            f" the embeddings have {config['vocab_size']} rows"
        )
    return Layout(config, vision, pixels, tokenizer)


def read_config(path: Path) -> dict[str, Any]:
    """The checkpoint's `config.json`, checked.  Raises `CheckpointError`."""
    config = read_json(path)
    if config.get("model_type") not in ("clip_t5", "t5"):
        raise CheckpointError(f"{path}: model_type is {config.get('model_type')!r}, not 'clip_t5' or 't5'")
    if "scale_decoder_outputs" in config:
        # transformers 5 writes this for what 4 means by tie_word_embeddings, and that as always true
        config["tie_word_embeddings"] = config["scale_decoder_outputs"]
    for name in SIZES:
        check_size(path, config, name)
    check_fixed(path, {name: config.get(name) for name in STATED}, STATED)
    check_fixed(path, {name: value for name, value in config.items() if value is not None}, FIXED)
    if config.get("image_aspect_ratio") not in tuple(PADS):  # which may be compared with anything
        raise CheckpointError(
            f"{path}: image_aspect_ratio is {config['image_aspect_ratio']!r}, not 'pad' or 'square'"
        )
    built(path, T5Config, {**config, "model_type": "t5"})
    return config


def read_extra_ids(path: Path) -> int:
    """How many sentinels `<extra_id_…>` the tokenizer adds to its pieces.  Raises `CheckpointError`."""
    extra = read_json(path).get("extra_ids", 100) if path.is_file() else 100
    if type(extra) is not int or extra < 0:
        raise CheckpointError(f"{path}: extra_ids is {extra!r}, not a whole number")
    return extra


# --- weights ------------------------------------------------------------------------------------


def rename(name: str) -> str | None:
    """The one name of a tensor of a published checkpoint; None for one that is not used."""
    name = name.removeprefix("module.").removeprefix("model.")
    if name.endswith(UNUSED):
        return None
    if name in SHARED:
        return EMBEDDING
    if name.startswith("vision_tower."):
        for level in ("vision_tower.", "vision_tower.", "vision_model."):
            name = name.removeprefix(level)
        return f"vision_tower.{name}"
    return name


def renamed(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """
    *tensors* by their one name.

    Raises:
        CheckpointError: the names of the shared embedding hold different numbers.
    """
    found: dict[str, torch.Tensor] = {}
    for given, tensor in tensors.items():
        name = rename(given)
        if name in found and not torch.equal(found[name], tensor):
            raise CheckpointError(f"{given}: differs from {name}, and both must be the same")
        if name:
            found[name] = tensor
    return found
