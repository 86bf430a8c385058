"""The supported kinds of CLIPs of transformers, with their settings."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AlignModel,
    EfficientNetImageProcessor,
    Siglip2ImageProcessor,
    Siglip2Model,
    SiglipImageProcessor,
    SiglipModel,
)

from models.checkpoints.files import model_type, safetensors_files
from models.checkpoints.pretrained import load_processor

ALIGN_LENGTH = 64  # tokens that ALIGN was trained with; its text tower has positions for more


@dataclass(frozen=True, slots=True)
class Kind:
    """
    Settings of a kind of CLIP that are not in its configuration.

    Attributes:
        network, processor: classes of transformers.
        lower: it was trained on lowercase only.
        masked: its text tower takes an attention mask.
        length: tokens of every text, padding included, by the network's configuration.
        scale: factor of cosines in its training.
    """

    network: Any
    processor: Any
    lower: bool
    masked: bool
    length: Callable[[Any], int]
    scale: Callable[[Any], torch.Tensor]


def siglip(network: Any, processor: Any) -> Kind:
    """Return the kind of a SigLIP (Zhai et al. 2023), version 1 or 2."""
    return Kind(
        network,
        processor,
        lower=True,
        masked=False,
        length=lambda config: config.text_config.max_position_embeddings,
        scale=lambda network: network.logit_scale.exp(),
    )


KINDS = {
    "siglip": siglip(SiglipModel, SiglipImageProcessor),
    "siglip2": siglip(Siglip2Model, Siglip2ImageProcessor),
    "align": Kind(
        AlignModel,
        EfficientNetImageProcessor,
        lower=False,
        masked=True,
        length=lambda config: min(ALIGN_LENGTH, config.text_config.max_position_embeddings),
        scale=lambda network: 1 / network.temperature,
    ),
}


def kind_of(directory: Path) -> Kind:
    """Return the kind of a checkpoint.  Raises `CheckpointError` for another one."""
    return KINDS[model_type(directory, *KINDS)]


def processor_of(directory: Path) -> Any:
    """Load the checkpoint's image processor.  Raises `CheckpointError`."""
    return load_processor(kind_of(directory).processor, directory)


def weights(directory: Path) -> list[Path]:
    """Return the weight files of a checkpoint of these kinds.  Raises `CheckpointError`."""
    return safetensors_files(directory, *KINDS)
