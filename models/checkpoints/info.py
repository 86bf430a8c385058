"""The `ModelInfo` of a checkpoint directory: its revision and its vocabulary."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from models.checkpoints.files import VOCABULARY, weight_files
from models.core.contract import ModelInfo
from models.core.family import Family


def info_of(
    family: Family,
    directory: Path,
    files: Sequence[str],
    dtype: str,
    device: str,
    id: str,
    revision: str,
    **more: Any,
) -> ModelInfo:
    """
    Return the info of a model in *directory*.

    Args:
        files: names of files that are hashed, with the weights, into the default of *revision*.
        id: label of the model's scores, by default the name of the directory.
        more: other fields of `ModelInfo`.
    """
    return ModelInfo(
        role=family.role,
        family=family.name,
        id=id or directory.name,
        revision=revision or digest_of([*(directory / name for name in files), *weight_files(directory)]),
        dtype=dtype,
        device=device,
        vocabulary=read_vocabulary(directory),
        **more,
    )


def read_vocabulary(directory: Path) -> frozenset[str]:
    """Return the only words that a small model was trained on; empty if it takes any."""
    path = directory / VOCABULARY
    return frozenset(path.read_text("utf-8").split()) if path.is_file() else frozenset()


def digest_of(paths: Iterable[Path]) -> str:
    """Return twelve hex digits of a digest of the contents of those of *paths* that are files."""
    digest = hashlib.sha256()
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]
