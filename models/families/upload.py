"""Inputs of a batch on their way to the device."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

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
    copied.record_stream(kernels)  # or its memory would be free for the next copy while kernels read it
    return copied


@cache
def copying(device: torch.device) -> Any:
    """Return the stream of all copies to *device*."""
    return cuda.Stream(device)
