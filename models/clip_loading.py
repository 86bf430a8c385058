"""
Load a CLIP that was found: its network, its preprocessing and its tokenizer.

open_clip's public API does it, so an embedding is the one that open_clip's users get.  Nothing is
unpickled beyond plain tensors, and no code of a checkpoint is run.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import open_clip
from transformers import AutoConfig

from models import clip_layout
from models.base import CheckpointError
from models.checkpoint import DTYPES, in_short, read_file, read_json
from models.clip_source import LOCAL, Found
from models.misfits import shortened

CONFIG = "open_clip_config.json"
MOST_WORDS, LONGEST_WORD = 50_000, 40  # that a tokenizer remembers

# Where weights lie in open_clip's own layout, in open_clip's order, then in that of transformers.
WEIGHTS = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
    "open_clip_pytorch_model.pth",
    "model.safetensors",
    "pytorch_model.bin",
    "pytorch_model.pth",
    "model.pth",
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A network with its preprocessing and tokenizer; *crops*: only a picture's middle is seen."""

    network: Any
    preprocess: Any
    tokenizer: Any
    crops: bool


def load(found: Found, dtype: str, device: str, resize_mode: str | None = None) -> Loaded:
    """
    The network, its preprocessing and its tokenizer.

    Args:
        resize_mode: how a picture becomes a square, in place of the checkpoint's own way.

    Raises:
        CheckpointError: a file is missing or broken, or the weights don't fit; the message says which.
    """
    directory = found.directory
    try:
        if directory is None or (directory / CONFIG).is_file():
            return load_own(found, dtype, device, resize_mode)
        if not (directory / clip_layout.CONFIG).is_file():
            raise CheckpointError(
                f"{directory}: neither {CONFIG} nor transformers' {clip_layout.CONFIG} in it"
            )
        if resize_mode is not None:
            raise CheckpointError(f"{directory}: resize_mode is for open_clip's own layout")
        return load_published(directory, dtype, device)
    except CheckpointError:
        raise
    except Exception as exc:  # open_clip, torch and transformers raise many kinds
        raise CheckpointError(fault(found, exc)) from exc


def load_own(found: Found, dtype: str, device: str, resize_mode: str | None) -> Loaded:
    """A model in open_clip's own layout, or known to it by name."""
    name = found.name
    if found.directory is not None:
        name = f"{LOCAL}{found.directory}"
        if "model_cfg" not in read_json(found.directory / CONFIG):
            raise CheckpointError(f"{found.directory / CONFIG}: has no model_cfg")
        weights_in(found.directory)
    config = open_clip.get_model_config(name)
    check_towers(found, config)
    with warnings.catch_warnings():  # open_clip would go on with the wrong activation
        warnings.filterwarnings("error", "QuickGELU mismatch")
        network, preprocess = open_clip.create_model_from_pretrained(
            name,
            found.pretrained or None,
            precision=precision(config, dtype),
            device=device,
            image_resize_mode=resize_mode,
            weights_only=True,
        )
    crops = network.visual.preprocess_cfg["resize_mode"] == "shortest"
    return Loaded(network.eval(), preprocess, tokenizer_of(found, name, config), crops)


def precision(config: dict[str, Any], dtype: str) -> str:
    """open_clip's name of *dtype*."""
    if dtype == "float32":
        return "fp32"
    # Its "bf16" keeps layer norms in float32, and trips over SigLIP's biased projection and CoCa's pooler.
    stumbles = config["text_cfg"].get("proj_bias") or config["vision_cfg"].get("attentional_pool")
    return "pure_bf16" if stumbles else "bf16"


def load_published(directory: Path, dtype: str, device: str) -> Loaded:
    """A model in the layout that transformers publishes."""
    network = clip_layout.network(directory, DTYPES[dtype]).to(device).eval()
    preprocess = clip_layout.pixels(directory, network.visual.image_size[0])
    tokenizer = forgetful(clip_layout.tokenizer(directory, network.context_length))
    return Loaded(network, preprocess, tokenizer, crops=True)


def tokenizer_of(found: Found, name: str, config: dict[str, Any]) -> Any:
    """open_clip's tokenizer for *name*.  Raises `CheckpointError`."""
    words = config["text_cfg"].get("hf_tokenizer_name")
    if not words:
        return forgetful(open_clip.get_tokenizer(name))
    try:
        return open_clip.get_tokenizer(name, trust_remote_code=False, local_files_only=not found.online)
    except Exception as exc:  # transformers and tokenizers raise many kinds
        where = found.directory or f"{words}, which must be in the hub's local cache"
        raise CheckpointError(f"{name}: no tokenizer from {where}: {in_short(exc)}") from exc


class Words(dict[str, str]):
    """Words and the parts they were split into, short words only and not too many."""

    def __setitem__(self, word: str, parts: str) -> None:
        """Keep *word* where there is room."""
        if len(self) < MOST_WORDS and len(word) <= LONGEST_WORD:
            super().__setitem__(word, parts)


def forgetful(tokenizer: Any) -> Any:
    """The tokenizer; open_clip's own would keep every word of every prompt for good."""
    if isinstance(tokenizer, open_clip.SimpleTokenizer):
        tokenizer.cache = Words(tokenizer.cache)
    return tokenizer


def check_towers(found: Found, config: dict[str, Any]) -> None:
    """Refuse a part that would be fetched where nothing may be, or that brings code of its own."""
    place = found.directory or found.name
    if ":" in (config["vision_cfg"].get("timm_model_name") or ""):
        raise CheckpointError(f"{place}: the vision tower's configuration lies on a hub")
    text = config["text_cfg"].get("hf_model_name")
    if text and found.online:
        AutoConfig.from_pretrained(text, trust_remote_code=False)
    elif text and not Path(text).is_dir():
        raise CheckpointError(f"{place}: the text tower's configuration lies on a hub ({text})")


def weights_in(directory: Path) -> Path:
    """The file that open_clip takes the weights from.  Raises `CheckpointError` where that is none or any."""
    for name in WEIGHTS:
        if (directory / name).is_file():
            return directory / name
    others = [path for path in directory.iterdir() if path.suffix in (".safetensors", ".bin", ".pth")]
    if len(others) != 1:
        found = f"{len(others)} other files of weights" if others else "no weights"
        raise CheckpointError(f"{directory}: {found} found (looked for {', '.join(WEIGHTS)})")
    return others[0]


def fault(found: Found, exc: Exception) -> str:
    """One line about what *found* could not be loaded for."""
    place: Path | str = found.directory or found.name
    file = Path(found.pretrained)
    if found.directory is not None and (found.directory / CONFIG).is_file():
        file = weights_in(found.directory)
    if "Error(s) in loading state_dict" in str(exc):
        return f"{file if file.is_file() else place}: {shortened(str(exc))}"
    try:
        if file.is_file():
            read_file(file, "cpu")
    except CheckpointError as unreadable:
        return str(unreadable)
    return f"{place}: {in_short(exc)}"
