"""Load a detector of transformers: its network with every weight."""

from pathlib import Path
from typing import Any

import torch

from models.checkpoints.configuration import read_json
from models.checkpoints.files import CONFIG, safetensors_files
from models.checkpoints.pretrained import load_pretrained
from models.core.contract import CheckpointError


def load_network(kind: Any, model_type: str, directory: Path, dtype: torch.dtype) -> Any:
    """
    The network of a class of transformers with every weight from *directory*.

    Raises:
        CheckpointError: a file is missing, or is of another type than *model_type*.
    """
    place = weights_of(directory, model_type)[0]
    return load_pretrained(kind, directory, dtype, place)


def weights_of(directory: Path, model_type: str) -> list[Path]:
    """The files of the weights.  Raises `CheckpointError` for another type, and for no safetensors."""
    found = read_json(directory / CONFIG).get("model_type")
    if found != model_type:
        raise CheckpointError(f"{directory / CONFIG}: model_type is {found!r}, not {model_type!r}")
    return safetensors_files(directory, "a detector's")
