"""The layout of a published CLIP-FlanT5: configurations, names of weights, and its plan."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F
from transformers import CLIPVisionConfig, T5Config

from models.checkpoints.files import (
    CONFIG,
    PIECES,
    PREPROCESSOR,
    PROCESSOR,
    TOKENIZER_CONFIG,
    VISION_TOWER,
    built,
    check_fixed,
    check_model_type,
    check_size,
    read_json,
    weight_files,
)
from models.checkpoints.plan import plan_checkpoint
from models.checkpoints.weights import tensor_sizes
from models.core.contract import CheckpointError
from models.core.family import Plan
from models.families.clip_flant5 import PUBLISHED_MODELS, ClipFlanT5Settings
from models.families.clip_flant5.tokens import EOS, PAD, T5Tokenizer
from models.families.processors import read_steps
from models.images.pixels import Pixels

# The tower of every published checkpoint, which holds its weights, but not these constants.
KNOWN_TOWER = "clip-vit-large-patch14-336"
VIT_L_14_336 = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
    "projection_dim": 768,
    "hidden_act": "quick_gelu",
}
FIXED_TOWER = {"model_type": "clip_vision_model", "num_channels": 3}


def read_tower(path: Path, named: str | None) -> dict[str, Any]:
    """Read the vision tower's configuration, by default the published one.  Raises `CheckpointError`."""
    if path.is_file():
        given = read_json(path)
        given = given.get("vision_config", given)
    elif named is None or Path(str(named)).name == KNOWN_TOWER:
        given = VIT_L_14_336
    else:
        raise CheckpointError(
            f"{path}: missing; only {KNOWN_TOWER} needs no such file, and mm_vision_tower is {named!r}"
        )
    check_fixed(path, given, FIXED_TOWER)
    tower: dict[str, Any] = built(path, CLIPVisionConfig, given).to_dict()
    for name in ("hidden_size", "image_size", "patch_size", "num_hidden_layers", "num_attention_heads"):
        check_size(path, tower, name)
    if tower["hidden_size"] % tower["num_attention_heads"]:
        raise CheckpointError(f"{path}: hidden_size is no multiple of the number of attention heads")
    try:
        activation(tower["hidden_act"])
    except KeyError:
        raise CheckpointError(f"{path}: there is no hidden_act {tower['hidden_act']!r}") from None
    return tower


def activation(name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the activation function that transformers has under *name*.  Raises `KeyError`."""
    if name == "quick_gelu":
        return quick_gelu
    if name == "gelu":
        return F.gelu
    from transformers.activations import ACT2FN  # takes seconds, and no published tower needs it

    function: Callable[[torch.Tensor], torch.Tensor] = ACT2FN[name]
    return function


def quick_gelu(x: torch.Tensor) -> torch.Tensor:
    """Return x times the sigmoid of 1.702 x."""
    return x * torch.sigmoid(1.702 * x)


def read_pixels(directory: Path, image_size: int, pad: bool) -> Pixels:
    """
    Read the image processor: the CLIP processor's steps, with the given mean and deviation.

    Raises:
        CheckpointError: the processor has other steps.
    """
    steps = read_steps(directory, image_size, square=pad)
    if steps.squash and not pad:
        raise CheckpointError(f"{directory}: the image processor squashes pictures, which is not implemented")
    return Pixels(image_size, mean=steps.mean, std=steps.std, pad=pad)


# Files that change a score, besides the weights.
FILES = (
    CONFIG,
    TOKENIZER_CONFIG,
    PIECES,
    f"{VISION_TOWER}/{CONFIG}",
    f"{VISION_TOWER}/{PREPROCESSOR}",
    f"{VISION_TOWER}/{PROCESSOR}",
)

SIZE_SETTINGS = ("vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_heads")

# The only value that is implemented.  T5's own defaults differ, so these must be present, ...
REQUIRED_SETTINGS = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
# ... and these may be missing.
FIXED_SETTINGS = {
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
PADDED_BY_ASPECT = {"pad": True, "square": False, None: False}  # image_aspect_ratio

EMBEDDING = "shared.weight"
SHARED_EMBEDDINGS = (
    EMBEDDING,
    "embed_tokens.weight",
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
)
# Older tools save a buffer, and a bias that T5 does not use.
UNUSED_TENSORS = ("position_ids", "EncDecAttention.relative_attention_bias.weight")


@dataclass(frozen=True, slots=True)
class Layout:
    """The configurations of T5 and the vision tower, the image processor and the tokenizer."""

    config: dict[str, Any]
    vision: dict[str, Any]
    pixels: Pixels
    tokenizer: T5Tokenizer


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
    pad = PADDED_BY_ASPECT[config.get("image_aspect_ratio")]
    pixels = read_pixels(directory / VISION_TOWER, vision["image_size"], pad)
    tokenizer = T5Tokenizer(directory / PIECES, read_extra_ids(directory / TOKENIZER_CONFIG))
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
    for name in SIZE_SETTINGS:
        check_size(path, config, name)
    check_fixed(path, {name: config.get(name) for name in REQUIRED_SETTINGS}, REQUIRED_SETTINGS)
    check_fixed(path, {name: value for name, value in config.items() if value is not None}, FIXED_SETTINGS)
    if config.get("image_aspect_ratio") not in tuple(
        PADDED_BY_ASPECT
    ):  # a tuple, for a value that is not hashable
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
    if name.endswith(UNUSED_TENSORS):
        return None
    if name in SHARED_EMBEDDINGS:
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


def plan(settings: ClipFlanT5Settings) -> Plan:
    """Return the plan of a CLIP-FlanT5.  Same errors as `models.checkpoints.plan.plan`."""
    torch.device(settings.device)
    sizes = {name: published.num_parameters for name, published in PUBLISHED_MODELS.items()}
    return plan_checkpoint(settings.checkpoint, settings.revision, count, sizes)


def count(directory: Path) -> int:
    """Return the number of parameters, the shared embedding once; check all files but the weights."""
    read_layout(directory)
    sizes = tensor_sizes(weight_files(directory))
    return sum({rename(name): size for name, size in sizes.items() if rename(name)}.values())
