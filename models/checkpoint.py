"""
Read a checkpoint directory: weights, configuration and the revision that names them.

Weights come from safetensors or, as published for CLIP-FlanT5, from `pytorch_model.bin`, whole or
sharded.  Nothing is ever unpickled beyond plain tensors.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from models.base import CheckpointError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}

WEIGHTS = ("model.safetensors", "pytorch_model.bin")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in *path*.  Raises `CheckpointError` where there is none."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        raise CheckpointError(f"{path}: {exc}") from exc
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: not a JSON object")
    return value


def weight_files(directory: Path) -> list[Path]:
    """The files that hold the weights, sharded or not, safetensors first."""
    for name in WEIGHTS:
        index = directory / f"{name}.index.json"
        if (directory / name).is_file():
            return [directory / name]
        if index.is_file():
            shards = set(read_json(index).get("weight_map", {}).values())
            if any("/" in shard or "\\" in shard for shard in shards):
                raise CheckpointError(f"{index}: a shard lies outside the checkpoint")
            return [directory / shard for shard in sorted(shards)]
    raise CheckpointError(f"{directory}: no weights found (looked for {', '.join(WEIGHTS)})")


def read_weights(directory: Path) -> dict[str, torch.Tensor]:
    """All tensors of a checkpoint, on the CPU, by name."""
    tensors: dict[str, torch.Tensor] = {}
    for path in weight_files(directory):
        try:
            if path.suffix == ".safetensors":
                tensors |= load_file(path)
            else:
                tensors |= torch.load(path, map_location="cpu", weights_only=True)
        except Exception as exc:  # torch and safetensors raise many kinds for a broken file
            raise CheckpointError(f"{path}: cannot be read as weights: {exc}") from exc
    return tensors


def revision_of(directory: Path) -> str:
    """A revision for a local directory that names none: from its configuration and weights."""
    return digest_of([directory / "config.json", *weight_files(directory)])


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
