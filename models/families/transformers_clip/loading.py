"""Load a CLIP of transformers: which kinds there are, the network with every weight, the image processor."""

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

from models.checkpoints.configuration import read_json
from models.checkpoints.files import CONFIG, PREPROCESSOR, PROCESSOR, safetensors_files
from models.checkpoints.pretrained import load_pretrained, load_processor
from models.core.contract import CheckpointError

ALIGN_LENGTH = 64  # tokens that ALIGN was trained with; its text tower has positions for more


@dataclass(frozen=True, slots=True)
class Kind:
    """
    What transformers does not say of a kind of CLIP.

    Attributes:
        network, processor: classes of transformers.
        lower: whether it was trained on small letters only.
        masked: whether its text tower is told which tokens are padding.
        length: tokens of every text, padding included, by the network's configuration.
        scale: what its training multiplied cosines by.
    """

    network: Any
    processor: Any
    lower: bool
    masked: bool
    length: Callable[[Any], int]
    scale: Callable[[Any], torch.Tensor]


def siglip(network: Any, processor: Any) -> Kind:
    """A SigLIP (Zhai et al. 2023), of the first version or the second."""
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
    """Which kind a checkpoint is.  Raises `CheckpointError` for another one."""
    path = directory / CONFIG
    model_type = read_json(path).get("model_type")
    if not isinstance(model_type, str) or model_type not in KINDS:
        raise CheckpointError(f"{path}: model_type is {model_type!r}; read are {', '.join(KINDS)}")
    return KINDS[model_type]


def weights_of(directory: Path) -> list[Path]:
    """The files of the weights.  Raises `CheckpointError` for another kind, and for no safetensors."""
    kind_of(directory)
    return safetensors_files(directory, "the")


def load_network(directory: Path, dtype: torch.dtype) -> Any:
    """The network with every weight.  Raises `CheckpointError`."""
    place = weights_of(directory)[0]
    return load_pretrained(kind_of(directory).network, directory, dtype, place)


def processor_of(directory: Path) -> Any:
    """What makes tensors of pictures, as the checkpoint says.  Raises `CheckpointError`."""
    whole = directory / PROCESSOR  # where newer versions of transformers save all processors of a model
    path = whole if whole.is_file() else directory / PREPROCESSOR
    return load_processor(kind_of(directory).processor, path)
