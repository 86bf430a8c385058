"""What is told of a model whose checkpoint is a directory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from models.checkpoints.revision import revision_of
from models.checkpoints.vocabulary import read_vocabulary
from models.core.contract import ModelInfo
from models.core.family import Family


def info_of(
    family: Family,
    directory: Path,
    files: Sequence[str],
    *,
    dtype: str,
    device: str,
    id: str,
    revision: str,
    **more: Any,
) -> ModelInfo:
    """
    The info of a model in *directory*.

    Args:
        files: of the checkpoint, beside its weights, whose digest is the revision where there is none.
        id: what scores are labelled with; by default the directory's name.
        more: what only some models tell.
    """
    return ModelInfo(
        role=family.role,
        family=family.name,
        id=id or directory.name,
        revision=revision or revision_of(directory, files),
        dtype=dtype,
        device=device,
        vocabulary=read_vocabulary(directory),
        **more,
    )
