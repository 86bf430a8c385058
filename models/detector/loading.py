"""Load a detector of transformers: its network with every weight, and how it takes pictures."""

from pathlib import Path
from typing import Any

import torch

from models.checkpoints.configuration import read_json
from models.checkpoints.files import CONFIG, PREPROCESSOR, weight_files
from models.checkpoints.pretrained import load_pretrained
from models.contract import CheckpointError
from models.reason import in_short


def load_network(kind: Any, model_type: str, directory: Path, dtype: torch.dtype) -> Any:
    """
    The network of a class of transformers with every weight from *directory*.

    Raises:
        CheckpointError: a file is missing, or is of another type than *model_type*.
    """
    files = safetensors_files(directory, model_type)
    network, absent = load_pretrained(kind, directory, dtype, files[0])
    if absent:
        raise CheckpointError(f"{files[0]}: weights are missing or of another shape: {', '.join(absent[:4])}")
    return network


def safetensors_files(directory: Path, model_type: str) -> list[Path]:
    """The files of the weights.  Raises `CheckpointError` for another type, and for no safetensors."""
    found = read_json(directory / CONFIG).get("model_type")
    if found != model_type:
        raise CheckpointError(f"{directory / CONFIG}: model_type is {found!r}, not {model_type!r}")
    files = weight_files(directory)
    for path in files:
        if path.suffix != ".safetensors":
            raise CheckpointError(f"{path}: a detector's weights are read from safetensors only")
    return files


def load_processor(kind: Any, directory: Path) -> Any:
    """What makes tensors of pictures, as the checkpoint says.  Raises `CheckpointError`."""
    path = directory / PREPROCESSOR
    read_json(path)
    try:
        return kind.from_pretrained(directory, local_files_only=True)
    except Exception as exc:  # a broken file fails in many ways
        raise CheckpointError(f"{path}: {in_short(exc)}") from exc
