"""Sequences of token ids as one padded batch."""

from collections.abc import Sequence

import torch
from torch.nn.utils.rnn import pad_sequence


def padded(
    rows: Sequence[Sequence[int]], device: str | torch.device, pad: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids (N, longest), padded on the right, and their mask (N, longest): 0 at padding, else 1."""
    tensors = [torch.tensor(row) for row in rows]
    ids = pad_sequence(tensors, batch_first=True, padding_value=pad)
    mask = pad_sequence([torch.ones_like(row) for row in tensors], batch_first=True)
    return ids.to(device), mask.to(device)
