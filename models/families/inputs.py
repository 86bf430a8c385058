"""Inputs of a batch: padded to one length, and on their way to the device."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

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


@dataclass(frozen=True, slots=True)
class ImageAndText:
    """
    The input of a reward model.

    Attributes:
        key: of the picture; inputs with equal keys have equal pixels.
        ids: tokens of the text.
        truncated, unknown: see `TokenisedResult`.
    """

    key: str
    pixels: torch.Tensor
    ids: tuple[int, ...]
    truncated: bool
    unknown: float


def distinct_images(
    inputs: Sequence[ImageAndText], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the pixels of each picture once (P, 3, height, width), and the picture of each input (N)."""
    images = {input.key: input.pixels for input in inputs}
    order = {key: place for place, key in enumerate(images)}
    places = torch.tensor([order[input.key] for input in inputs], device=device)
    return upload([*images.values()], device), places


cuda: Any = torch.cuda  # partly not typed


def upload(rows: Sequence[torch.Tensor], device: torch.device) -> torch.Tensor:
    """
    Return *rows* as one tensor on *device*.

    To a GPU they are copied from pinned memory, several times as fast, and on a stream of its own, so that
    the copy does not wait for the kernels of another model.
    """
    if device.type != "cuda":
        return torch.stack([*rows]).to(device)
    pinned = torch.empty((len(rows), *rows[0].shape), dtype=rows[0].dtype, pin_memory=True)
    torch.stack([*rows], out=pinned)
    copies, kernels = copying(device), cuda.current_stream(device)
    with cuda.stream(copies):
        copied = pinned.to(device, non_blocking=True)
    kernels.wait_stream(copies)
    copied.record_stream(kernels)  # its memory must not be free for the next copy while kernels read it
    return copied


@cache
def copying(device: torch.device) -> Any:
    """Return the stream of all copies to *device*."""
    return cuda.Stream(device)
