"""
The layout of a published CLIP-FlanT5 checkpoint: its configuration and the names of its tensors.

The layout is that of `zhiqiulin/clip-flant5-xl` and `-xxl`.  A setting that would change a score and is not
implemented is an error; defaults are those of the reference implementation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import T5Config

from models.checkpoints.configuration import built, check_fixed, check_model_type, check_size, read_json
from models.checkpoints.files import CONFIG, PIECES, PREPROCESSOR, PROCESSOR, TOKENIZER_CONFIG, VISION_TOWER
from models.core.contract import CheckpointError
from models.families.clip_flant5.tokenizer import EOS, PAD, Tokenizer
from models.families.clip_flant5.tower import read_pixels, read_tower
from models.images.pixels import Pixels

# Files that change a score, besides the weights.
FILES = (
    CONFIG,
    TOKENIZER_CONFIG,
    PIECES,
    f"{VISION_TOWER}/{CONFIG}",
    f"{VISION_TOWER}/{PREPROCESSOR}",
    f"{VISION_TOWER}/{PROCESSOR}",
)

SIZES = ("vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_heads")

# The only value that is implemented.  T5's own defaults differ, so these must be present, ...
STATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
# ... and these may be missing.
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
# Of older tools: a buffer, and a bias that T5 does not use.
UNUSED = ("position_ids", "EncDecAttention.relative_attention_bias.weight")


@dataclass(frozen=True, slots=True)
class Layout:
    """The configurations of T5 and the vision tower, the image processor and the tokenizer."""

    config: dict[str, Any]
    vision: dict[str, Any]
    pixels: Pixels
    tokenizer: Tokenizer


def read_layout(directory: Path) -> Layout:
    """
    Read everything in *directory* but the weights, without requests.

    Raises:
        CheckpointError: a file is missing or broken, the files contradict each other, or a setting is not
            implemented.
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
    pixels = read_pixels(directory / VISION_TOWER, vision["image_size"], pad)
    tokenizer = Tokenizer(directory / PIECES, read_extra_ids(directory / TOKENIZER_CONFIG))
    if tokenizer.size > config["vocab_size"]:
        raise CheckpointError(
            f"{directory}: the tokenizer doesn't match: it has {tokenizer.size} pieces,"
            f" the embeddings have {config['vocab_size']} rows"
        )
    return Layout(config, vision, pixels, tokenizer)


def read_config(path: Path) -> dict[str, Any]:
    """Read and check the checkpoint's `config.json`.  Raises `CheckpointError`."""
    config = read_json(path)
    check_model_type(path, config, "clip_t5", "t5")
    if "scale_decoder_outputs" in config:
        # transformers 5 writes the tie_word_embeddings of 4 here, and that itself as always true
        config["tie_word_embeddings"] = config["scale_decoder_outputs"]
    for name in SIZES:
        check_size(path, config, name)
    check_fixed(path, {name: config.get(name) for name in STATED}, STATED)
    check_fixed(path, {name: value for name, value in config.items() if value is not None}, FIXED)
    if config.get("image_aspect_ratio") not in tuple(PADS):  # a tuple, for a value that is not hashable
        raise CheckpointError(
            f"{path}: image_aspect_ratio is {config['image_aspect_ratio']!r}, not 'pad' or 'square'"
        )
    built(path, T5Config, {**config, "model_type": "t5"})
    return config


def read_extra_ids(path: Path) -> int:
    """Read the number of sentinels `<extra_id_…>` of the tokenizer.  Raises `CheckpointError`."""
    extra = read_json(path).get("extra_ids", 100) if path.is_file() else 100
    if type(extra) is not int or extra < 0:
        raise CheckpointError(f"{path}: extra_ids is {extra!r}, not a whole number")
    return extra


# --- weights ------------------------------------------------------------------------------------


def rename(name: str) -> str | None:
    """Return the canonical name of a tensor of a published checkpoint; None for one that is not used."""
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
    Return *tensors* by their canonical names.

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
