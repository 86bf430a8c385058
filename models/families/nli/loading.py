"""Load an NLI checkpoint of transformers: its network with every weight."""

from pathlib import Path
from typing import Any, Literal

import torch
from transformers import AutoModelForSequenceClassification, T5ForConditionalGeneration

from models.checkpoints.configuration import read_json
from models.checkpoints.files import CONFIG, safetensors_files
from models.checkpoints.pretrained import load_pretrained

Kind = Literal["classifier", "true"]

NETWORKS = {"classifier": AutoModelForSequenceClassification, "true": T5ForConditionalGeneration}


def kind_of(directory: Path) -> Kind:
    """A T5 that writes is one of TRUE's kind; all others classify.  Raises `CheckpointError`."""
    config = read_json(directory / CONFIG)
    writes = "T5ForConditionalGeneration" in (config.get("architectures") or [])
    return "true" if writes else "classifier"


def weights_of(directory: Path) -> list[Path]:
    """The files of the weights.  Raises `CheckpointError` where they are not safetensors."""
    return safetensors_files(directory, "an NLI model's")


def load_network(directory: Path, kind: Kind, dtype: torch.dtype) -> Any:
    """The network with every weight from *directory*.  Raises `CheckpointError`."""
    return load_pretrained(NETWORKS[kind], directory, dtype, weights_of(directory)[0])
