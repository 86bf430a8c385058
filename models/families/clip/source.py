"""
The source of a CLIP: a directory, a repository on the hub, or a name of open_clip.

Only a hub id, or a name with a tag of published weights, causes requests; only data is downloaded.
"""

from dataclasses import dataclass
from pathlib import Path

import open_clip

from models.checkpoints.files import (
    CLIP_DATA_SUFFIXES,
    CLIP_FETCHED,
    CLIP_FETCHED_WEIGHTS,
    OPEN_CLIP_CONFIG,
    open_clip_weights,
)
from models.checkpoints.hub_file import path_of
from models.checkpoints.info import content_of, digest_of
from models.checkpoints.locate import HUB_ID, download, locate
from models.core.contract import CheckpointError

LOCAL, HUB = "local-dir:", "hf-hub:"  # open_clip's prefixes


@dataclass(frozen=True, slots=True)
class Found:
    """
    The source of a CLIP: a *directory*, or a *name* of open_clip with its *pretrained* weights.

    Requests are made only if it is *online*: from a hub, or by a tag of published weights.  *files* as in
    `ModelInfo`.
    """

    id: str
    revision: str
    files: str
    directory: Path | None = None
    name: str = ""
    pretrained: str = ""
    online: bool = False

    @property
    def place(self) -> Path | str:
        """The directory or the name, for messages."""
        return self.directory or self.name

    @property
    def open_clip_name(self) -> str:
        """The name to pass to open_clip."""
        return f"{LOCAL}{self.directory}" if self.directory else self.name

    def weights(self) -> Path | None:
        """
        Return the file that open_clip would read the weights from; None for a tag or the layout of
        transformers.

        Raises:
            CheckpointError: the directory holds no such file, or several are possible.
        """
        if self.directory is None:
            return None if self.online else Path(self.pretrained)
        return open_clip_weights(self.directory) if has_own_layout(self.directory) else None


def has_own_layout(directory: Path) -> bool:
    """Return True if open_clip saved *directory*."""
    return (directory / OPEN_CLIP_CONFIG).is_file()


def find(model: str, pretrained: str | None, revision: str) -> Found:
    """
    Find *model*: a directory, `demo:NAME`, a hub id, or a name of open_clip.

    Raises:
        CheckpointError: there is no such thing, or the hub can't be reached.
    """
    place = Path(model.removeprefix(LOCAL)).expanduser()
    if not place.is_dir() and (name := model.replace("/", "-")) in open_clip.list_models():
        return find_name(name, pretrained or "", revision)
    if pretrained and model:
        raise CheckpointError(f"{model}: `pretrained` needs a name of open_clip, which this is not")
    if model and (place.is_dir() or model.startswith("demo:")):
        found = locate(model.removeprefix(LOCAL))
        content = content_of(found.directory, data_files(found.directory))
        return Found(found.id, revision or content, content, found.directory)
    repository = model.removeprefix(HUB)
    if model.startswith(LOCAL) or not HUB_ID.fullmatch(repository):
        raise CheckpointError(
            f"{model or '(no model)'}: neither a directory, nor a hub id, nor a name of open_clip"
        )
    directory = fetch(repository, revision)
    return Found(repository, directory.name, directory.name, directory, online=True)  # that of a commit


def find_name(name: str, pretrained: str, revision: str) -> Found:
    """Find a model of open_clip by name.  Raises `CheckpointError` unless *pretrained* is a tag or a file."""
    path = path_of(pretrained)
    if pretrained and open_clip.is_pretrained_cfg(name, pretrained):
        return Found(name, revision or pretrained, pretrained, name=name, pretrained=pretrained, online=True)
    if pretrained and path.is_file():
        content = digest_of([path])
        return Found(name, revision or content, content, name=name, pretrained=str(path))
    tags = ", ".join(open_clip.list_pretrained_tags_by_model(name)) or "none"
    reason = f"{pretrained} is neither a tag nor a file" if pretrained else "`pretrained` is not set"
    raise CheckpointError(f"{name}: {reason}; open_clip's tags for it: {tags}")


def fetch(repository: str, revision: str) -> Path:
    """Download the configuration of a repository and the first supported weights in it."""
    for weights in CLIP_FETCHED_WEIGHTS:
        directory = download(repository, revision, (*CLIP_FETCHED, weights))
        if any(directory.glob(weights)):
            return directory
    raise CheckpointError(f"{repository}: holds no weights (looked for {', '.join(CLIP_FETCHED_WEIGHTS)})")


def data_files(directory: Path) -> list[Path]:
    """Return all files with data in a local directory."""
    return [path for path in sorted(directory.iterdir()) if path.suffix in CLIP_DATA_SUFFIXES]
