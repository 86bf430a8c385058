"""
The layout in which transformers saves a CLIP, loaded into an open_clip network.

Equal arithmetic, other names: in open_clip queries, keys and values are one matrix, and projections are
transposed.  Pixels are those of transformers' CLIP image processor.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import open_clip
import torch
from transformers import CLIPConfig

from models.checkpoints.files import CONFIG, check_model_type, read_json
from models.checkpoints.weights import mismatch, read_weights, translated
from models.core.contract import CheckpointError
from models.core.messages import in_short
from models.families.clip.preprocessing import Preprocessing
from models.families.processors import read_steps
from models.images.pixels import Pixels, Preprocessor

QUICK_GELU = {"quick_gelu": True, "gelu": False}
PROJECTIONS = ("text_projection", "visual.proj")
POSITION_IDS = ".position_ids"  # a buffer in older files

# open_clip's names to those of transformers, from the whole to the parts.
TENSOR_NAMES = (
    (r"^visual\.", "vision_model."),
    (r"^(?!vision_model|text_projection|logit_scale)", "text_model."),
    (r"transformer\.resblocks", "encoder.layers"),
    (r"\.ln_([12])\.", r".layer_norm\1."),
    (r"\.mlp\.c_fc\.", ".mlp.fc1."),
    (r"\.mlp\.c_proj\.", ".mlp.fc2."),
    (r"\.attn\.", ".self_attn."),
    (r"\.ln_pre\.", ".pre_layrnorm."),  # sic
    (r"\.ln_post\.", ".post_layernorm."),
    (r"\.ln_final\.", ".final_layer_norm."),
    (r"\.conv1\.", ".embeddings.patch_embedding."),
    (r"\.token_embedding\.", ".embeddings.token_embedding."),
    (r"\.class_embedding$", ".embeddings.class_embedding"),
    (r"\.positional_embedding$", ".embeddings.position_embedding.weight"),
    (r"^vision_model\.proj$", "visual_projection.weight"),
    (r"^text_projection$", "text_projection.weight"),
)


def transformers_names(name: str) -> list[str]:
    """Return transformers' names for the tensor *name* of open_clip, in open_clip's order."""
    found = translated(name, TENSOR_NAMES)
    head, joint, kind = found.rpartition("in_proj_")
    return [f"{head}{part}_proj.{kind}" for part in "qkv"] if joint else [found]


def network(directory: Path, dtype: torch.dtype) -> Any:
    """
    Build an open_clip network with the weights of *directory*.

    Raises:
        CheckpointError: a file is missing or broken, an activation is not implemented, or the weights don't
            fit.
    """
    config = read_config(directory)
    half = dtype if dtype != torch.float32 else None
    made = open_clip.CLIP(**open_clip_config(directory, config), cast_dtype=half)
    if half is not None:
        open_clip.convert_weights_to_lp(made, half)
    made.load_state_dict(converted(directory, made.state_dict()))
    return made


def read_config(directory: Path) -> CLIPConfig:
    """Read the configuration in *directory*.  Raises `CheckpointError`."""
    path = directory / CONFIG
    check_model_type(path, read_json(path), "clip")
    try:
        return CLIPConfig.from_pretrained(directory, local_files_only=True)
    except Exception as exc:  # a value of a wrong type fails in many ways
        raise CheckpointError(f"{path}: {in_short(exc)}") from exc


def open_clip_config(directory: Path, config: CLIPConfig) -> dict[str, Any]:
    """Translate a configuration into that of open_clip."""
    text, vision = config.text_config, config.vision_config
    if text.hidden_act != vision.hidden_act or text.hidden_act not in QUICK_GELU:
        raise CheckpointError(
            f"{directory / CONFIG}: hidden_act must be one of {', '.join(QUICK_GELU)} and the same in both"
            f" towers, not {text.hidden_act!r} and {vision.hidden_act!r}"
        )
    return {
        "embed_dim": config.projection_dim,
        "quick_gelu": QUICK_GELU[text.hidden_act],
        "vision_cfg": tower(vision)
        | {
            "image_size": vision.image_size,
            "patch_size": vision.patch_size,
            "head_width": vision.hidden_size // vision.num_attention_heads,
        },
        "text_cfg": tower(text)
        | {
            "context_length": text.max_position_embeddings,
            "vocab_size": text.vocab_size,
            "heads": text.num_attention_heads,
            # Old configurations have a wrong id, 2, for the largest id of the text.
            **({} if text.eos_token_id == 2 else {"pool_type": "eos", "eos_id": text.eos_token_id}),
        },
    }


def tower(config: Any) -> dict[str, Any]:
    """Return the settings that both towers have."""
    return {
        "width": config.hidden_size,
        "layers": config.num_hidden_layers,
        # open_clip rounds width * ratio down; the half prevents an error of one.
        "mlp_ratio": (config.intermediate_size + 0.5) / config.hidden_size,
        "norm_kwargs": {"eps": config.layer_norm_eps},
    }


def converted(directory: Path, wanted: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the weights of *directory* under open_clip's names, in the shapes of *wanted*."""
    held = read_weights(directory)
    tensors = {name: tensor for name, tensor in held.items() if not name.endswith(POSITION_IDS)}
    sources = {name: transformers_names(name) for name in wanted}
    expected = {
        part: tensor
        for name, whole in wanted.items()
        for part, tensor in zip(sources[name], split(name, whole, len(sources[name])), strict=True)
    }
    if wrong := mismatch(tensors, dict(sorted(expected.items()))):
        raise CheckpointError(f"{directory}: the weights don't fit {CONFIG}: {wrong}")
    return {name: joined(name, [tensors[part] for part in parts]) for name, parts in sources.items()}


def split(name: str, whole: torch.Tensor, parts: int) -> Sequence[torch.Tensor]:
    """Split the tensor *name* of open_clip into the *parts* that transformers has."""
    if name in PROJECTIONS:
        return [whole.T]
    return whole.chunk(parts) if parts > 1 else [whole]


def joined(name: str, parts: list[torch.Tensor]) -> torch.Tensor:
    """Join *parts* into the one tensor *name* of open_clip."""
    whole = torch.cat(parts) if len(parts) > 1 else parts[0]
    return whole.T if name in PROJECTIONS else whole


def pixels(directory: Path, size: int) -> Preprocessor:
    """
    Return the image processor that the directory describes, or CLIP's own.

    Raises:
        CheckpointError: it has other steps than to resize, crop and normalise to *size*.
    """
    steps = read_steps(directory, size)
    if steps.squash:
        return Preprocessing((size, size), steps.mean, steps.std, "squash")
    return Pixels(size, steps.mean, steps.std, pad=False, columns_first=False)
