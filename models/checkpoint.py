"""
Read a checkpoint directory: weights, configuration and the revision that names them.

Weights come from safetensors or, as published for CLIP-FlanT5, from `pytorch_model.bin`, whole or
sharded.  Nothing is ever unpickled beyond plain tensors.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file

from models.base import CheckpointError
from models.misfits import listed

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}

WEIGHTS = ("model.safetensors", "pytorch_model.bin")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in *path*.  Raises `CheckpointError` where there is none."""
    if not path.is_file():
        raise CheckpointError(f"{path}: missing")
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        raise CheckpointError(f"{path}: {exc}") from exc
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: not a JSON object")
    return value


# --- weights ------------------------------------------------------------------------------------


def weight_files(directory: Path) -> list[Path]:
    """
    The files that hold the weights, sharded or not; safetensors go first.

    Raises:
        CheckpointError: there are none, or one that the index names is missing.
    """
    for name in WEIGHTS:
        if (directory / name).is_file():
            return [directory / name]
        index = directory / f"{name}.index.json"
        if index.is_file():
            return shards(index)
    raise CheckpointError(f"{directory}: no weights found (looked for {', '.join(WEIGHTS)})")


def shards(index: Path) -> list[Path]:
    """The files that an `….index.json` names, all of them there."""
    placed = read_json(index).get("weight_map")
    if not isinstance(placed, dict) or not placed or not all(isinstance(s, str) for s in placed.values()):
        raise CheckpointError(f"{index}: no weight_map of tensors to files")
    names = sorted(set(placed.values()))
    if any("/" in name or "\\" in name for name in names):
        raise CheckpointError(f"{index}: a shard lies outside the checkpoint")
    absent = [name for name in names if not (index.parent / name).is_file()]
    if absent:
        raise CheckpointError(f"{index}: {len(absent)} of {len(names)} shards missing: {listed(absent)}")
    return [index.parent / name for name in names]


def read_weights(directory: Path) -> dict[str, torch.Tensor]:
    """All tensors of a checkpoint, on the CPU, by name."""
    tensors: dict[str, torch.Tensor] = {}
    for path in weight_files(directory):
        tensors |= read_file(path, "cpu")
    return tensors


def read_file(path: Path, device: str) -> dict[str, torch.Tensor]:
    """The tensors of one file; on the device "meta" only their shapes are read."""
    try:
        if path.suffix != ".safetensors":
            held = torch.load(path, map_location=device, weights_only=True)
        elif device == "meta":
            with safe_open(path, "pt") as file:
                names = file.keys()
                shapes = {name: file.get_slice(name).get_shape() for name in names}
            held = {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
        else:
            held = load_file(path, device=device)
    except Exception as exc:  # torch and safetensors raise many kinds for a broken file
        reason = f"{in_short(exc)} (broken or truncated)"
        if type(exc).__name__ == "UnpicklingError":
            # PyTorch's own message explains how to run the code in such a file.
            reason = (
                "not unpickled: it holds something else than plain tensors, and nothing else is unpickled"
            )
        raise CheckpointError(f"{path}: cannot be read as weights: {reason}") from exc
    if not isinstance(held, dict):
        raise CheckpointError(f"{path}: holds no weights by name")
    inner = held.get("state_dict")  # as training scripts save it
    tensors: dict[str, torch.Tensor] = inner if isinstance(inner, dict) else held
    if not all(isinstance(tensor, torch.Tensor) for tensor in tensors.values()):
        raise CheckpointError(f"{path}: holds something else than tensors by name")
    return tensors


def in_short(exc: Exception) -> str:
    """What was raised, as one line that is not too long."""
    return f"{type(exc).__name__}: {' '.join(str(exc).split())[:200]}"


def parameters(paths: Iterable[Path]) -> dict[str, int]:
    """How many numbers each tensor of some weight files holds, without reading them."""
    return {
        name: math.prod(tensor.shape) for path in paths for name, tensor in read_file(path, "meta").items()
    }


# --- what names and describes a checkpoint ------------------------------------------------------


def revision_of(directory: Path, names: Sequence[str] = ("config.json",)) -> str:
    """A revision for a local directory that names none: from its files of those *names* and its weights."""
    return digest_of([*(directory / name for name in names), *weight_files(directory)])


def read_vocabulary(directory: Path) -> frozenset[str]:
    """The only words a small model was taught, from `vocabulary.txt`; empty where any will do."""
    path = directory / "vocabulary.txt"
    return frozenset(path.read_text("utf-8").split()) if path.is_file() else frozenset()


def digest_of(paths: Iterable[Path]) -> str:
    """Twelve hex digits for the contents of those of *paths* that are files."""
    digest = hashlib.sha256()
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]
