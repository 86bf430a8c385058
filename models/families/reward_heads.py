"""
Heads of reward models, which several families have: from an embedding, or the state of a token, to numbers.

ImageReward and the second LAION aesthetic predictor have the same five linear layers without activations,
with dropouts between them in training; the first predictor has a single layer.  HPSv3, HPSv3++ and EditReward
have three layers with activations.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from models.checkpoints.weights import mismatch
from models.core.contract import CheckpointError

SINGLE_WEIGHT = "weight"
HIDDEN_PLACES = (0, 2, 4, 6)
LAST_PLACE = 7

HEAD_PREFIX = "rm_head."
HIDDEN_WIDTHS = (1024, 16)  # outputs of the layers before the last
OUTPUT_WIDTH = 2  # the mean, and the logarithm of the deviation


class Layers(nn.Module):
    """The five layers, with the input *widths* of each."""

    def __init__(self, widths: list[int]) -> None:
        super().__init__()
        places: list[nn.Module] = [nn.Identity() for _ in range(LAST_PLACE + 1)]
        for place, width, following in zip(
            (*HIDDEN_PLACES, LAST_PLACE), widths, (*widths[1:], 1), strict=True
        ):
            places[place] = nn.Linear(width, following)
        self.layers = nn.Sequential(*places)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Map vectors (N, width) to numbers (N, 1)."""
        numbers: torch.Tensor = self.layers(vectors)
        return numbers


def linear_head(tensors: Mapping[str, torch.Tensor], path: Path) -> nn.Module:
    """
    Build the head that fits the names and shapes of *tensors*; its own weights are random.

    Args:
        path: name of the file in errors.

    Raises:
        CheckpointError: no such head has these tensors.
    """
    sizes = {name: tuple(tensor.shape) for name, tensor in tensors.items() if tensor.ndim == 2}
    names = (
        [SINGLE_WEIGHT] if SINGLE_WEIGHT in sizes else [f"layers.{place}.weight" for place in HIDDEN_PLACES]
    )
    if absent := [name for name in names if 0 in sizes.get(name, (0,))]:
        raise CheckpointError(f"{path}: not a head of linear layers: {absent[0]} is missing, or no matrix")
    width = sizes[names[0]][1]
    head = (
        nn.Linear(width, 1)
        if names == [SINGLE_WEIGHT]
        else Layers([width, *(sizes[name][0] for name in names)])
    )
    if wrong := mismatch(tensors, head.state_dict()):
        raise CheckpointError(f"{path}: not a head of linear layers: {wrong}")
    return head


def width_of(head: nn.Module) -> int:
    """Return the input width of *head*."""
    return next(layer.in_features for layer in head.modules() if isinstance(layer, nn.Linear))


def relu_head(
    tensors: Mapping[str, torch.Tensor], width: int, path: Path, prefix: str = HEAD_PREFIX
) -> nn.Module:
    """
    Build the head of HPSv3 on states of *width* numbers from the tensors whose names begin with *prefix*.

    Args:
        path: name of the file in errors.

    Raises:
        CheckpointError: they do not fit.
    """
    first, second = HIDDEN_WIDTHS
    # The third is a dropout in training.
    layers = [nn.Linear(width, first), nn.ReLU(), nn.Identity(), nn.Linear(first, second), nn.ReLU()]
    head = nn.Sequential(*layers, nn.Linear(second, OUTPUT_WIDTH))
    held = {name.removeprefix(prefix): each for name, each in tensors.items() if name.startswith(prefix)}
    if wrong := mismatch(held, head.state_dict()):
        raise CheckpointError(f"{path}: not a head of {width} numbers ({prefix}…): {wrong}")
    head.load_state_dict(held)
    return head.float()
