"""Where a checkpoint lies: a directory, a shipped demo model, or a repository on the hub."""

import re
from pathlib import Path

from models.base import CheckpointError

DEMO = Path(__file__).parent / "demo" / "weights"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def locate(checkpoint: str, revision: str = "") -> Path:
    """
    The directory of *checkpoint*: a path, `demo:NAME`, or a hub id `owner/name`.

    Only a hub id ever causes a request, and only one that is not in the local cache.

    Raises:
        CheckpointError: there is no such directory, or the hub can't be reached.
    """
    if checkpoint.startswith("demo:"):
        directory = DEMO / checkpoint.removeprefix("demo:")
    else:
        directory = Path(checkpoint).expanduser()
    if directory.is_dir() and checkpoint:
        return directory
    if not HUB_ID.fullmatch(checkpoint):
        raise CheckpointError(f"{checkpoint or '(no checkpoint)'}: no such directory")
    return download(checkpoint, revision)


def is_hub_id(checkpoint: str, directory: Path) -> bool:
    """Whether *directory* came from the hub."""
    return Path(checkpoint) != directory and HUB_ID.fullmatch(checkpoint) is not None


def download(repository: str, revision: str) -> Path:
    """Fetch a repository's data files (never its code) from the hub into the local cache."""
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                repository,
                revision=revision or None,
                allow_patterns=["*.json", "*.safetensors", "*pytorch_model*.bin", "*.model"],
            )
        )
    except Exception as exc:  # the hub's client raises many kinds
        raise CheckpointError(f"{repository}: not a directory, and not to be had: {exc}") from exc
