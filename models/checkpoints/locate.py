"""Where a checkpoint lies: a directory, a shipped demo model, or a repository on the hub."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import huggingface_hub

from models.checkpoints.files import FETCHED, FETCHED_FIRST, FETCHED_WEIGHTS
from models.core.contract import CheckpointError
from models.core.reason import in_short
from models.core.settings import LocalSettings

DEMO = Path(__file__).parents[1] / "demo" / "weights"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
COMMIT = re.compile(r"[0-9a-f]{40}")
SHORT = re.compile(r"[0-9a-f]{7,39}")


@dataclass(frozen=True, slots=True)
class Located:
    """A checkpoint's directory, and what scores call it unless the settings say otherwise."""

    directory: Path
    id: str
    revision: str = ""  # empty: a digest of the files


class ModelArguments(TypedDict):
    """What a model in a directory is made with."""

    directory: Path
    dtype: str
    device: str
    id: str
    revision: str


def model_arguments(settings: LocalSettings) -> ModelArguments:
    """Those of a table's model, whose checkpoint is found first.  Raises `CheckpointError`."""
    found = locate(settings.checkpoint, settings.revision)
    return {
        "directory": found.directory,
        "dtype": settings.dtype,
        "device": settings.device,
        "id": settings.id or found.id,
        "revision": found.revision or settings.revision,
    }


def locate(checkpoint: str, revision: str = "") -> Located:
    """
    Find *checkpoint*: a path, `demo:NAME`, or a hub id `owner/name`.

    Only a hub id ever causes a request, and only for what is not in the local cache.

    Raises:
        CheckpointError: there is no such directory, or the hub can't be reached.
    """
    if found := local(checkpoint):
        return found
    directory = cached(checkpoint, revision) if COMMIT.fullmatch(revision) else None
    directory = directory or download(checkpoint, revision)
    return Located(directory, checkpoint, directory.name)  # the folder of a commit


def local(checkpoint: str) -> Located | None:
    """
    *checkpoint* as a directory; None where it may be one of the hub's.

    Raises:
        CheckpointError: it is neither a directory nor what a hub id looks like.
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
    return None


def cached(repository: str, revision: str = "") -> Path | None:
    """What lies of a repository in the hub's local cache, where its weights are among it; no request."""
    try:
        directory = Path(
            huggingface_hub.snapshot_download(
                repository, revision=named(revision), allow_patterns=list(FETCHED), local_files_only=True
            )
        )
    except Exception:  # the hub's client raises many kinds
        return None
    has_weights = any(any(directory.glob(pattern)) for pattern in FETCHED_WEIGHTS)
    return directory if has_weights and is_commit(directory, revision) else None


def download(repository: str, revision: str, patterns: Sequence[str] = FETCHED) -> Path:
    """
    Fetch those of a repository's files that match *patterns* from the hub into the local cache.

    The hub knows no abbreviated commits: one stands for the newest, which must be that.  Raises
    `CheckpointError`.
    """
    directory = fetch(repository, named(revision), FETCHED_FIRST)
    if not is_commit(directory, revision):
        raise CheckpointError(f"{repository}: its newest commit is {directory.name}, not {revision}")
    return fetch(repository, directory.name, patterns)


def fetch(repository: str, revision: str | None, patterns: Sequence[str]) -> Path:
    """The directory of one commit in the local cache, with its files of those *patterns*."""
    try:
        return Path(
            huggingface_hub.snapshot_download(repository, revision=revision, allow_patterns=list(patterns))
        )
    except Exception as exc:  # the hub's client raises many kinds
        raise CheckpointError(
            f"{repository}: no such directory, and it cannot be downloaded: {in_short(exc)}"
        ) from exc


def named(revision: str) -> str | None:
    """The revision that the hub is asked for; None asks for the newest commit."""
    return None if SHORT.fullmatch(revision) else revision or None


def is_commit(directory: Path, revision: str) -> bool:
    """Whether a commit's *directory* begins with an abbreviated *revision*; true of any other kind."""
    return not SHORT.fullmatch(revision) or directory.name.startswith(revision)
