"""The revision of a local checkpoint, unless the settings name one: a digest of its files."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from models.checkpoints.files import weight_files


def revision_of(directory: Path, names: Sequence[str]) -> str:
    """The revision of a local directory: twelve hex digits for its files of those *names* and its weights."""
    return digest_of([*(directory / name for name in names), *weight_files(directory)])


def digest_of(paths: Iterable[Path]) -> str:
    """Twelve hex digits for the contents of those of *paths* that are files."""
    digest = hashlib.sha256()
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]
