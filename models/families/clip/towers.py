"""The two towers of a CLIP: what they are given, and the embeddings they give."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F

from models.core.contract import ModelError
from models.core.outcomes import Embedding

Encode = Callable[..., torch.Tensor]


@dataclass(frozen=True, slots=True)
class Input:
    """One tower's input, one tensor for each argument; inputs with equal keys have equal tensors."""

    tower: Literal["image", "text"]
    key: str
    tensors: tuple[torch.Tensor, ...]
    truncated: bool = False


def embed(
    inputs: Sequence[Input], towers: Mapping[str, Encode], device: torch.device, dtype: torch.dtype
) -> list[Embedding | ModelError]:
    """One pass of each tower, over the distinct images and the distinct texts."""
    vectors: dict[tuple[str, str], np.ndarray | None] = {}
    for tower, encode in towers.items():
        distinct = {input.key: input.tensors for input in inputs if input.tower == tower}
        if distinct:
            columns = [torch.stack(column) for column in zip(*distinct.values(), strict=True)]
            rows = unit_vectors(encode, columns, device, dtype)
            vectors |= {(tower, key): row for key, row in zip(distinct, rows, strict=True)}
    return [outcome(vectors[input.tower, input.key], input.truncated) for input in inputs]


def unit_vectors(
    encode: Encode, tensors: Sequence[torch.Tensor], device: torch.device, dtype: torch.dtype
) -> list[np.ndarray | None]:
    """Read-only, each with memory of its own; None where one is not finite."""
    moved = [each.to(device, dtype if each.is_floating_point() else None) for each in tensors]
    rows = F.normalize(encode(*moved).float(), dim=-1).cpu().numpy()
    return [frozen(row) if np.isfinite(row).all() else None for row in rows]


def outcome(vector: np.ndarray | None, truncated: bool) -> Embedding | ModelError:
    """An embedding, or the error that takes its place."""
    return ModelError("the model's output is not finite") if vector is None else Embedding(vector, truncated)


def frozen(row: np.ndarray) -> np.ndarray:
    """A read-only copy: a cached row must not keep its whole batch in memory."""
    copied = row.copy()
    copied.flags.writeable = False
    return copied
