"""
Loading a CLIP: its network, its preprocessing and its tokenizer.

open_clip's public API does it, so embeddings equal open_clip's.  Nothing but plain tensors is unpickled, and
no code of a checkpoint is run.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import open_clip
from transformers import AutoConfig

from models.checkpoints.files import CONFIG, OPEN_CLIP_CONFIG, read_json
from models.checkpoints.weights import DTYPES
from models.core.contract import CheckpointError
from models.families.clip import transformers_layout
from models.families.clip.preprocessing import Preprocessing, named_tokenizer, own_tokenizer
from models.families.clip.source import Found, fault, has_own_layout
from models.images.pixels import Pixels, Preprocessor


@dataclass(frozen=True, slots=True)
class Parts:
    """A network with its preprocessing and tokenizer; *crops*: the preprocessing crops the centre."""

    network: Any
    preprocess: Preprocessor
    tokenizer: Any
    crops: bool


def load_parts(found: Found, dtype: str, device: str, resize_mode: str | None = None) -> Parts:
    """
    Load the network, its preprocessing and its tokenizer.

    Args:
        resize_mode: overrides the checkpoint's way to make a picture square.

    Raises:
        CheckpointError: a file is missing or broken, or the weights don't fit.
    """
    directory = found.directory
    try:
        if directory is None or has_own_layout(directory):
            return load_open_clip(found, dtype, device, resize_mode)
        if not (directory / CONFIG).is_file():
            raise CheckpointError(f"{directory}: neither {OPEN_CLIP_CONFIG} nor transformers' {CONFIG} in it")
        if resize_mode is not None:
            raise CheckpointError(f"{directory}: resize_mode is for open_clip's own layout")
        return load_transformers(directory, dtype, device)
    except CheckpointError:
        raise
    except Exception as exc:  # open_clip, torch and transformers raise many kinds
        raise CheckpointError(fault(found, exc)) from exc


def load_open_clip(found: Found, dtype: str, device: str, resize_mode: str | None) -> Parts:
    """Load a model in open_clip's own layout, or by a name of open_clip."""
    if found.directory is not None and "model_cfg" not in read_json(found.directory / OPEN_CLIP_CONFIG):
        raise CheckpointError(f"{found.directory / OPEN_CLIP_CONFIG}: has no model_cfg")
    found.weights()  # raises if open_clip would read another file
    config = open_clip.get_model_config(found.open_clip_name)
    check_towers(found, config)
    options = {"precision": precision(config, dtype), "device": device, "image_resize_mode": resize_mode}
    with warnings.catch_warnings():  # or open_clip would use the wrong activation
        warnings.filterwarnings("error", "QuickGELU mismatch")
        network = open_clip.create_model_from_pretrained(
            found.open_clip_name,
            found.pretrained or None,
            return_transform=False,
            weights_only=True,
            **options,
        )
    preprocess = Preprocessing.of(network.visual.preprocess_cfg)
    crops = preprocess.resize_mode == "shortest"
    return Parts(network.eval(), preprocess, named_tokenizer(found, config), crops)


def precision(config: dict[str, Any], dtype: str) -> str:
    """Return open_clip's name of *dtype*."""
    if dtype == "float32":
        return "fp32"
    # Its "bf16" keeps layer norms in float32, and fails with SigLIP's biased projection and CoCa's pooler.
    pure = config["text_cfg"].get("proj_bias") or config["vision_cfg"].get("attentional_pool")
    return "pure_bf16" if pure else "bf16"


def check_towers(found: Found, config: dict[str, Any]) -> None:
    """Reject a tower that needs a forbidden download, or that has code of its own."""
    if ":" in (config["vision_cfg"].get("timm_model_name") or ""):
        raise CheckpointError(
            f"{found.place}: the vision tower's configuration is on a hub, and is not downloaded"
        )
    text = config["text_cfg"].get("hf_model_name")
    if text and found.online:
        AutoConfig.from_pretrained(text, trust_remote_code=False)
    elif text and not Path(text).is_dir():
        raise CheckpointError(
            f"{found.place}: the text tower {text} is not a local directory, and is not downloaded"
        )


def load_transformers(directory: Path, dtype: str, device: str) -> Parts:
    """Load a model in the layout of transformers."""
    network = transformers_layout.network(directory, DTYPES[dtype]).to(device).eval()
    preprocess = transformers_layout.pixels(directory, network.visual.image_size[0])
    crops = isinstance(preprocess, Pixels)  # else it squashes
    return Parts(network, preprocess, own_tokenizer(directory, network.context_length), crops)
