"""
Heads that make one number of an embedding: linear layers without activations.

ImageReward and the second LAION aesthetic predictor have the same five, with dropouts between them in
training. The first predictor has a single layer.
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
