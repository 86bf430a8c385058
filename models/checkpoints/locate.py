"""The location of a checkpoint: a directory, a shipped demo model, or a repository on the hub."""

import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from models.checkpoints.files import FETCHED_FILES, FETCHED_FIRST, FETCHED_WEIGHTS
from models.core.contract import CheckpointAway, CheckpointError
from models.core.messages import in_short
from models.core.passing import causes, is_passing, passes
from models.core.settings import LocalSettings
from models.core.turn import LOADING

log = logging.getLogger("scoregate.checkpoints")

DEMO = Path(__file__).parents[1] / "demo" / "weights"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
COMMIT = re.compile(r"[0-9a-f]{40}")
UNSENT_ERRORS = ("LocalProtocolError", "UnicodeEncodeError")
# A commit, or the name of a branch or tag as Git has them; the hub's library reads a file of that name.
REVISION = re.compile(r"(?!.*\.\.)\w[\w.-]{0,99}(/\w[\w.-]{0,99}){0,9}", re.ASCII)
SHORT_COMMIT = re.compile(r"[0-9a-f]{7,39}")


@dataclass(frozen=True, slots=True)
class Located:
    """The directory of a checkpoint, and the default label of its scores."""

    directory: Path
    id: str
    revision: str = ""  # empty: a digest of the files


class ModelArguments(TypedDict):
    """
    Arguments of every model that is loaded from a directory.

    Attributes:
        directory: a checkpoint as transformers saves it, if the model names no other layout.
        dtype: "float32" or "bfloat16".
        device: of PyTorch: "cpu", "cuda:0".
        id, revision: label of the scores; by default the directory's name and a digest of its files.
    """

    directory: Path
    dtype: str
    device: str
    id: str
    revision: str


def model_arguments(settings: LocalSettings) -> ModelArguments:
    """Locate the checkpoint of a table, and return the model's arguments.  Raises `CheckpointError`."""
    found = locate(settings.checkpoint, settings.revision)
    return {
        "directory": found.directory,
        "dtype": settings.dtype,
        "device": settings.device,
        "id": settings.id or found.id,
        "revision": found.revision or settings.revision,
    }


def downloaded(settings: LocalSettings, files: Sequence[str]) -> ModelArguments:
    """Download *files* of a table's repository; return the model's arguments.  Same errors as `locate`."""
    directory = download(settings.checkpoint, settings.revision, files)
    return {
        "directory": directory,
        "dtype": settings.dtype,
        "device": settings.device,
        "id": settings.id or settings.checkpoint,
        "revision": directory.name,  # the folder of a commit
    }


def locate(checkpoint: str, revision: str = "") -> Located:
    """
    Find *checkpoint*: a path, `demo:NAME`, or a hub id `owner/name`, which is downloaded if it is not cached.

    Raises:
        CheckpointAway: the hub can't be reached now.
        CheckpointError: there is no such directory or repository.
    """
    if found := local(checkpoint):
        return found
    directory = cached(checkpoint, revision) if COMMIT.fullmatch(revision) else None
    directory = directory or download(checkpoint, revision)
    return Located(directory, checkpoint, directory.name)  # the folder of a commit


def local(checkpoint: str) -> Located | None:
    """
    Return *checkpoint* as a directory; None if it may be a repository on the hub.

    Raises:
        CheckpointError: it is neither a directory nor a valid hub id.
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
        raise CheckpointError(f"{checkpoint or '(no checkpoint)'}: {missing(checkpoint)}")
    return None


def missing(checkpoint: str) -> str:
    """Return why *checkpoint* is none, in words."""
    if not checkpoint.startswith("demo:"):
        return "no such directory"
    return f"no such demo model; there are {', '.join(sorted(each.name for each in DEMO.iterdir()))}"


def cached(repository: str, revision: str = "") -> Path | None:
    """
    Return a repository's directory in the hub's local cache if it holds weights; without a request.

    Raises `CheckpointError` as `named`.
    """
    wanted = named(revision)
    try:
        directory = Path(
            huggingface_hub.snapshot_download(
                repository, revision=wanted, allow_patterns=list(FETCHED_FILES), local_files_only=True
            )
        )
    except Exception:  # the hub's client raises many kinds
        return None
    has_weights = any(any(directory.glob(pattern)) for pattern in FETCHED_WEIGHTS)
    return directory if has_weights and is_commit(directory, revision) else None


def download(repository: str, revision: str, patterns: Sequence[str] = FETCHED_FILES) -> Path:
    """
    Download the files of a repository that match *patterns* into the hub's local cache.

    The hub rejects abbreviated commits.  The newest commit is used in place of one, with a warning if it is
    another.  Same errors as `locate`.
    """
    directory = fetch(repository, named(revision), FETCHED_FIRST)
    if not is_commit(directory, revision):
        log.warning("%s: its newest commit is %s, not %s; it is used", repository, directory.name, revision)
    return fetch(repository, directory.name, patterns)


def is_snapshot(directory: Path) -> bool:
    """Return True for a directory of the hub's local cache, which has the name of its commit."""
    return directory.parent.name == "snapshots" and bool(COMMIT.fullmatch(directory.name))


def fetch(repository: str, revision: str | None, patterns: Sequence[str]) -> Path:
    """
    Return the directory of one commit in the local cache, with its files that match *patterns*.

    A cache that cannot be written is used as it is, without a request.  Other models may be loaded meanwhile.
    """
    try:
        with LOADING.released():
            return Path(
                huggingface_hub.snapshot_download(
                    repository,
                    revision=revision,
                    allow_patterns=list(patterns),
                    local_files_only=not is_writable(cache_folder()),
                )
            )
    except Exception as exc:  # the hub's client raises many kinds
        raise hub_error(
            f"{repository}: no such directory, and it cannot be downloaded", repository, exc
        ) from exc


def hub_error(line: str, repository: str, exc: Exception) -> CheckpointError:
    """Return the error of a request to the hub for *repository*: *line*, the cause, and what to do."""
    kind = CheckpointAway if passes(exc) else CheckpointError
    return kind(f"{line}: {hub_fault(repository, exc)}")


def hub_fault(repository: str, exc: Exception) -> str:
    """Return why the hub's client raised *exc*, and what to do, without a token."""
    chain = list(causes(exc))
    command = f"`hf download {repository}`"
    at = constants.ENDPOINT
    if any(isinstance(each, OfflineModeIsEnabled) for each in chain):
        return f"it is not in the hub's cache, and HF_HUB_OFFLINE is set. Unset it, or run {command} first."
    if not is_writable(cache_folder()):
        return (
            f"the hub's cache {cache_folder()} cannot be written. Set HF_HUB_CACHE, or run {command} first."
        )
    if isinstance(exc, GatedRepoError):
        return f"it is gated. Accept its terms at {at}, run `hf auth login`, then {command}."
    if isinstance(exc, RepositoryNotFoundError):
        return f"{at} has no such repository, or a private one. Correct the name, or run `hf auth login`."
    if isinstance(exc, RevisionNotFoundError):
        return f"it has no such revision. Correct it; {command} without one gets the newest."
    if any(type(each).__name__ in UNSENT_ERRORS for each in chain):  # the error's text may hold the token
        return "HF_TOKEN has a character that no header can carry. Set it anew, or run `hf auth login`."
    if passes(exc):
        [*_, last] = filter(is_passing, chain)
        return (
            f"{at} cannot be reached ({in_short(last)}). Check the network and HF_ENDPOINT, or run {command}"
            " on a machine that can, and copy the hub's cache."
        )
    return f"{in_short(exc).rstrip('.')}. Check HF_ENDPOINT and the variables of proxies, or run {command}."


def cache_folder() -> Path:
    """Return the folder of the hub's cache, or the nearest one above it that exists."""
    place = Path(constants.HF_HUB_CACHE).absolute()
    return next(folder for folder in (place, *place.parents) if folder.exists())


def is_writable(folder: Path) -> bool:
    """Return True if files can be made in *folder*."""
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def named(revision: str) -> str | None:
    """
    Return the revision to request from the hub; None requests the newest commit.

    Raises `CheckpointError` for anything else than a commit, a branch or a tag.
    """
    if revision and not REVISION.fullmatch(revision):
        raise CheckpointError(
            f"revision: {revision[:80]!r} is neither a commit nor the name of a branch or tag"
        )
    return None if SHORT_COMMIT.fullmatch(revision) else revision or None


def is_commit(directory: Path, revision: str) -> bool:
    """Return True unless *revision* is an abbreviated commit other than that of *directory*."""
    return not SHORT_COMMIT.fullmatch(revision) or directory.name.startswith(revision)


HUB_FILE = re.compile(r"hf-hub:([A-Za-z0-9][\w.-]*/[\w.-]+)(?:@([0-9a-f]{40}))?/([^/]+)")


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file called *name* of a *repository* at a *commit*; empty: the newest one."""

    repository: str
    commit: str
    name: str

    @property
    def shown(self) -> str:
        """The repository with its commit, for people."""
        return f"{self.repository}@{self.commit or 'main'}"

    def cached(self) -> Path | None:
        """Return its path in the hub's local cache, without a request; None if it is not there."""
        path = huggingface_hub.try_to_load_from_cache(
            self.repository, self.name, revision=self.commit or None
        )
        return Path(path) if isinstance(path, str) else None

    def downloaded(self) -> Path:
        """Return its path.  A commit in the cache causes no request.  Raises `CheckpointError`."""
        if self.commit and (path := self.cached()):
            return path
        path = fetch(self.repository, self.commit or None, [self.name]) / self.name
        if not path.is_file():
            raise CheckpointError(f"{self.shown}: has no file {self.name}")
        if not self.commit:
            log.warning("%s: no commit is set; the newest is used, %s", self.repository, path.parent.name)
        return path


def hub_file(setting: str) -> HubFile | None:
    """Return the file of the hub that *setting* names; None if it names none."""
    found = HUB_FILE.fullmatch(setting)
    return HubFile(found[1], found[2] or "", found[3]) if found else None


def path_of(setting: str) -> Path:
    """Return the path of a file on the disk, or of a downloaded one of the hub.  Raises `CheckpointError`."""
    file = hub_file(setting)
    return file.downloaded() if file else Path(setting).expanduser()


HUB_TIMEOUT_S = 10.0


def pending_bytes(repository: str, revision: str = "", fetched: Sequence[Sequence[str]] = ()) -> int:
    """
    Return the bytes of *repository* that are not in the hub's local cache.

    Args:
        fetched: patterns of the files, as `Family.fetched`.

    Raises:
        CheckpointAway: the hub can't be reached now.
        CheckpointError: it has no such repository, it may not be called, or its cache cannot be written.
    """
    if not is_writable(cache_folder()):
        raise hub_error(f"{repository}: cannot be downloaded", repository, PermissionError())
    wanted_revision = named(revision)
    try:
        # Unlike the list of files, this is not retried: a hub that is away is known at once.
        commit = huggingface_hub.model_info(repository, revision=wanted_revision, timeout=HUB_TIMEOUT_S).sha
        for patterns in fetched or (FETCHED_FILES,):
            files = huggingface_hub.snapshot_download(
                repository, revision=commit, allow_patterns=[*patterns], dry_run=True
            )
            if any(file.filename.endswith((".safetensors", ".bin")) for file in files):
                break
    except Exception as exc:  # the hub's client raises many kinds
        raise hub_error(f"{repository}: cannot be found", repository, exc) from exc
    return sum(file.file_size or 0 for file in files if file.will_download)
