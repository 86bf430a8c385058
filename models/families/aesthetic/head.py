"""The head of an aesthetic predictor, in a file of its own."""

from pathlib import Path

from torch import nn

from models.checkpoints.hub_file import path_of
from models.checkpoints.weights import read_file
from models.core.contract import CheckpointError
from models.families.linear_head import linear_head


def head_file(head: str) -> Path:
    """Return the path of the setting `head`.  Raises `CheckpointError` if there is no such file."""
    path = path_of(head)
    if not head or not path.is_file():
        raise CheckpointError(f"{head or '(no head)'}: no such file; `head` names the predictor's weights")
    return path


def load_head(path: Path) -> nn.Module:
    """Load the head in float32.  Raises `CheckpointError`."""
    tensors = read_file(path, "cpu")
    head = linear_head(tensors, path)
    head.load_state_dict(tensors)
    return head.eval()
