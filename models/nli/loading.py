"""Load an NLI checkpoint of transformers: its network with every weight."""

from pathlib import Path
from typing import Any, Literal

import torch
from transformers import AutoModelForSequenceClassification, T5ForConditionalGeneration

from models.checkpoints.configuration import read_json
from models.checkpoints.files import CONFIG, weight_files
from models.checkpoints.pretrained import load_pretrained
from models.contract import CheckpointError

Kind = Literal["classifier", "true"]

NETWORKS = {"classifier": AutoModelForSequenceClassification, "true": T5ForConditionalGeneration}


def kind_of(directory: Path) -> Kind:
    """A T5 that writes is one of TRUE's kind; all others classify.  Raises `CheckpointError`."""
    config = read_json(directory / CONFIG)
    writes = "T5ForConditionalGeneration" in (config.get("architectures") or [])
    return "true" if writes else "classifier"


def safetensors_files(directory: Path) -> list[Path]:
    """The files of the weights.  Raises `CheckpointError` where they are not safetensors."""
    files = weight_files(directory)
    for path in files:
        if path.suffix != ".safetensors":
            raise CheckpointError(f"{path}: an NLI model's weights are read from safetensors only")
    return files


def load_network(directory: Path, kind: Kind, dtype: torch.dtype) -> Any:
    """The network with every weight from *directory*.  Raises `CheckpointError`."""
    files = safetensors_files(directory)
    network, absent = load_pretrained(NETWORKS[kind], directory, dtype, files[0])
    if absent:
        raise CheckpointError(f"{files[0]}: weights are missing or of another shape: {', '.join(absent[:4])}")
    return network
