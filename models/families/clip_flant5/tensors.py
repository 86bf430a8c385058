"""Tensors that move from one module to another."""

import torch
from torch import nn


class Weights:
    """
    Tensors by name, each released when it is taken.

    So a network built from them needs no memory for a second copy, even if it joins several tensors into one
    or converts them.

    Args:
        module: source of the tensors, which loses them.
        device, dtype: of the taken tensors.
    """

    def __init__(self, module: nn.Module, *, device: torch.device, dtype: torch.dtype) -> None:
        self._tensors = module.state_dict()
        module.to("meta")
        self.device, self.dtype = device, dtype

    def take(self, *names: str, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Return the tensors *names*, joined along the first dimension."""
        parts = [self._tensors.pop(name).to(self.device, dtype or self.dtype) for name in names]
        return parts[0] if len(parts) == 1 else torch.cat(parts)
