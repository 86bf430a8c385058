"""The head of an aesthetic predictor: a file of its own, beside that of the CLIP."""

from pathlib import Path

import torch
from torch import nn

from models.checkpoints.weights import read_file
from models.core.contract import CheckpointError
from models.families.linear_head import linear_head
from models.sizing.dry_run import is_dry


def head_file(head: str) -> Path:
    """The path of the setting `head`.  Raises `CheckpointError` where there is no such file."""
    path = Path(head).expanduser()
    if not head or not path.is_file():
        raise CheckpointError(f"{head or '(no head)'}: no such file; `head` names the predictor's weights")
    return path


def shapes_of(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a head without their numbers.  Raises `CheckpointError`."""
    tensors = read_file(path, "meta")
    linear_head(tensors, path)
    return tensors


def load_head(path: Path) -> nn.Module:
    """The head in float32.  Raises `CheckpointError`."""
    tensors = read_file(path, "meta" if is_dry() else "cpu")
    head = linear_head(tensors, path)
    if not is_dry():
        head.load_state_dict(tensors)
    return head.eval()
