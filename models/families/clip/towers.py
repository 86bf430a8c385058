"""The two towers of a CLIP: their inputs and their embeddings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F

from models.core.contract import ModelError
from models.core.outcomes import Embedding
from models.families.inputs import upload

Encode = Callable[..., torch.Tensor]


@dataclass(frozen=True, slots=True)
class Input:
    """One tower's input, one tensor for each argument; inputs with equal keys have equal tensors."""

    tower: Literal["image", "text"]
    key: str
    tensors: tuple[torch.Tensor, ...]
    truncated: bool = False
    unknown: float = 0.0


def check_ids(ids: torch.Tensor, vocabulary: int) -> None:
    """Raise `ModelError` for a token id without an embedding."""
    if ids.max() >= vocabulary:
        raise ModelError(
            "the tokenizer does not fit the text tower: its ids go beyond the tower's vocabulary"
        )


def embed(
    inputs: Sequence[Input], towers: Mapping[str, Encode], device: torch.device, dtype: torch.dtype
) -> list[Embedding]:
    """Run each tower once, on the distinct images and the distinct texts."""
    vectors: dict[tuple[str, str], np.ndarray] = {}
    for tower, encode in towers.items():
        distinct = {input.key: input.tensors for input in inputs if input.tower == tower}
        if distinct:
            columns = [upload(column, device) for column in zip(*distinct.values(), strict=True)]
            rows = unit_vectors(encode, columns, dtype)
            vectors |= {(tower, key): row for key, row in zip(distinct, rows, strict=True)}
    return [
        Embedding(vectors[input.tower, input.key], truncated=input.truncated, unknown=input.unknown)
        for input in inputs
    ]


def unit_vectors(encode: Encode, tensors: Sequence[torch.Tensor], dtype: torch.dtype) -> list[np.ndarray]:
    """Return read-only vectors of length 1, each with memory of its own."""
    given = [each.to(dtype) if each.is_floating_point() else each for each in tensors]
    rows = F.normalize(encode(*given).float(), dim=-1).cpu().numpy()
    return [frozen(row) for row in rows]


def frozen(row: np.ndarray) -> np.ndarray:
    """Copy *row* as read-only: a view in the cache would keep its whole batch in memory."""
    copied = row.copy()
    copied.flags.writeable = False
    return copied
