"""One file of a repository on the hub, as `hf-hub:OWNER/NAME@COMMIT/FILE`; without a commit the newest."""

import logging
import re
from dataclasses import dataclass
from pathlib import Path

import huggingface_hub

from models.checkpoints.locate import fetch
from models.core.contract import CheckpointError

log = logging.getLogger("scoregate.checkpoints")

FORM = re.compile(r"hf-hub:([A-Za-z0-9][\w.-]*/[\w.-]+)(?:@([0-9a-f]{40}))?/([^/]+)")


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
    found = FORM.fullmatch(setting)
    return HubFile(found[1], found[2] or "", found[3]) if found else None


def path_of(setting: str) -> Path:
    """Return the path of a file on the disk, or of a downloaded one of the hub.  Raises `CheckpointError`."""
    file = hub_file(setting)
    return file.downloaded() if file else Path(setting).expanduser()
