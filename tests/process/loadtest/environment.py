"""An environment with a few packages of this one, in which no process reaches another machine."""

import re
import venv
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

NAME = re.compile(r"[\w.-]+")
OFFLINE = """\
import socket

connect = socket.socket.connect


def local(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
        raise OSError(f"the network is off: {address}")
    return connect(self, address)


socket.socket.connect = local
"""


def offline_environment(folder: Path, names: Iterable[str]) -> Path:
    """Make an environment with the packages *names*, as far as they are installed; return its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "sitecustomize.py").write_text(OFFLINE)
    for found in installed(names):
        for part in parts(found):
            link, place = packages / part, Path(str(found.locate_file(part)))
            if place.exists() and not link.exists():
                link.parent.mkdir(exist_ok=True)
                link.symlink_to(place)
    return folder / "bin" / "python"


def with_dependencies(names: Iterable[str]) -> set[str]:
    """Return *names* and what they need, without extras."""
    found: set[str] = set()
    waiting = [*names]
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            for each in installed([name]):
                needed = (line for line in each.requires or () if "extra ==" not in line)
                waiting += [NAME.match(line).group() for line in needed]
    return found


def installed(names: Iterable[str]) -> Iterator[Distribution]:
    for name in names:
        try:
            yield distribution(name)
        except PackageNotFoundError:
            continue


def parts(found: Distribution) -> set[str]:
    """Return the files and folders of a package, those in a folder that it shares with others one by one."""
    files = [file.parts for file in found.files or () if ".." not in file.parts]
    alone = {
        parts[0]
        for parts in files
        if parts[1:] == ("__init__.py",) or parts[0].endswith((".dist-info", ".libs"))
    }
    return {parts[0] if parts[0] in alone or len(parts) == 1 else "/".join(parts[:2]) for parts in files}
