"""Sequences of token ids as one padded batch, and the longest that a network takes."""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence


def padded(
    rows: Sequence[Sequence[int]], device: str | torch.device, pad: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids (N, longest), padded on the right, and their mask (N, longest): 0 at padding, else 1."""
    tensors = [torch.tensor(row) for row in rows]
    ids = pad_sequence(tensors, batch_first=True, padding_value=pad)
    mask = pad_sequence([torch.ones_like(row) for row in tensors], batch_first=True)
    return ids.to(device), mask.to(device)


def positions(network: nn.Module, default: int) -> int:
    """
    Return the highest number of tokens with a position; RoBERTa's first few positions are for padding.

    Args:
        default: for a network without embeddings of positions.
    """
    found = [
        module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
        for name, module in network.named_modules()
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding)
    ]
    return min(found, default=default)
