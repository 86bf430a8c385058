"""A module's tensors on their way into another."""

import torch
from torch import nn


class Weights:
    """
    Tensors by name, each taken once and then no longer held here.

    So a network built from them needs no memory for a second copy, not even where it joins several
    tensors into one or keeps them in another dtype.

    Args:
        module: where they come from; left without them.
        device, dtype: what they are taken as.
    """

    def __init__(self, module: nn.Module, *, device: torch.device, dtype: torch.dtype) -> None:
        self._tensors = module.state_dict()
        module.to("meta")
        self.device, self.dtype = device, dtype

    def take(self, *names: str, dtype: torch.dtype | None = None) -> torch.Tensor:
        """The tensors called *names*, joined along the first dimension."""
        parts = [self._tensors.pop(name).to(self.device, dtype or self.dtype) for name in names]
        return parts[0] if len(parts) == 1 else torch.cat(parts)
