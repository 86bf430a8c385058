"""The `ModelInfo` of a checkpoint directory: its revision, a digest of its files, and its vocabulary."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from models.checkpoints.files import VOCABULARY, weight_files
from models.checkpoints.locate import is_snapshot
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
    *,
    weights: Sequence[Path] | None = None,
    **more: Any,
) -> ModelInfo:
    """
    Return the info of a model in *directory*.

    Args:
        files: names of all files that a result depends on, besides the weights.
        id, revision: label of the model's scores, by default the name of the directory and `content_of` it.
        weights: files of the weights, by default those of transformers.
        more: other fields of `ModelInfo`.
    """
    paths = [directory / name for name in files]
    content = content_of(directory, [*paths, *(weight_files(directory) if weights is None else weights)])
    return ModelInfo(
        role=family.role,
        family=family.name,
        id=id or directory.name,
        revision=revision or content,
        dtype=dtype,
        device=device,
        files=content,
        vocabulary=read_vocabulary(directory),
        **more,
    )


def read_vocabulary(directory: Path) -> frozenset[str]:
    """Return the only words that a small model was trained on; empty if it takes any."""
    path = directory / VOCABULARY
    return frozenset(path.read_text("utf-8").split()) if path.is_file() else frozenset()


def content_of(directory: Path, paths: Iterable[Path]) -> str:
    """
    Return a digest of the files at *paths* in *directory*; of one in the hub's cache the commit.

    A commit never changes, so its weights are not read for that.
    """
    return directory.name if is_snapshot(directory) else digest_of(paths)


def digest_of(paths: Iterable[Path]) -> str:
    """Return twelve hex digits of a digest of the contents of those of *paths* that are files."""
    digest = hashlib.sha256()
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]
