"""Error messages for a CLIP that could not be loaded."""

from pathlib import Path
from typing import Any

import open_clip
import torch

from models.checkpoints.files import OPEN_CLIP_CONFIG
from models.checkpoints.mismatch import mismatch
from models.checkpoints.weights import read_file
from models.core.contract import CheckpointError
from models.core.messages import in_short, quiet
from models.families.clip.source import Found


def fault(found: Found, exc: Exception) -> str:
    """Describe in one line why *found* could not be loaded, which raised *exc*."""
    try:
        file = found.weights()
        wrong = open_clip_mismatch(found, file) if file else ""
    except CheckpointError as unreadable:
        return str(unreadable)
    if not wrong:
        return f"{found.place}: {in_short(exc)}"
    network = OPEN_CLIP_CONFIG if found.directory else found.name
    return f"{file}: the weights don't fit {network}: {wrong}"


def open_clip_mismatch(found: Found, file: Path) -> str:
    """
    Describe why the weights in *file* do not fit the network of *found*; empty if they fit or it cannot be
    built.

    Raises:
        CheckpointError: the file cannot be read.
    """
    read_file(file, "cpu")
    try:
        with quiet():
            network = open_clip.create_model(found.open_clip_name, load_weights=False, pretrained_text=False)
            tensors = converted(network, file)
    except Exception:  # the reason why loading failed, already in the message
        return ""
    return mismatch(tensors, network.state_dict())


def converted(network: Any, file: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of *file* as open_clip would load them: renamed and resized."""
    held: dict[str, torch.Tensor] = {}
    network.load_state_dict = lambda tensors, **_: held.update(tensors)
    open_clip.load_checkpoint(network, str(file))
    return held
