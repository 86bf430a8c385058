"""Where a checkpoint lies: a directory, a shipped demo model, or a repository on the hub."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from models.base import CheckpointError

DEMO = Path(__file__).parent / "demo" / "weights"
DATA = ("*.json", "*.safetensors", "*pytorch_model*.bin", "*.model")  # what is fetched; never code
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


@dataclass(frozen=True, slots=True)
class Located:
    """A checkpoint's directory, and what scores call it unless the settings say otherwise."""

    directory: Path
    id: str
    revision: str = ""  # empty: a digest of the files


def locate(checkpoint: str, revision: str = "") -> Located:
    """
    Find *checkpoint*: a path, `demo:NAME`, or a hub id `owner/name`.

    Only a hub id ever causes a request, and only for what is not in the local cache.

    Raises:
        CheckpointError: there is no such directory, or the hub can't be reached.
    """
    if checkpoint.startswith("demo:"):
        name = checkpoint.removeprefix("demo:")
        found = Located(DEMO / name, f"scoregate-demo-{name.replace('_', '-')}")
    else:
        directory = Path(checkpoint).expanduser()
        found = Located(directory, directory.name)
    if checkpoint and found.directory.is_dir():
        return found
    if not HUB_ID.fullmatch(checkpoint):
        raise CheckpointError(f"{checkpoint or '(no checkpoint)'}: no such directory")
    directory = download(checkpoint, revision)
    return Located(directory, checkpoint, revision or directory.name)  # the folder of a commit


def download(repository: str, revision: str, patterns: Sequence[str] = DATA) -> Path:
    """Fetch those of a repository's files that match *patterns* from the hub into the local cache."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(repository, revision=revision or None, allow_patterns=list(patterns)))
    except Exception as exc:  # the hub's client raises many kinds
        raise CheckpointError(f"{repository}: not a directory, and not to be had: {exc}") from exc
