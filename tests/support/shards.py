"""Tar files as WebDataset writes them."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path


def tar_of(path: Path, members: Mapping[str, bytes | str | None]) -> Path:
    """Write a tar of files by name; a text is the target of a link, and None is a folder."""
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            else:
                info.type = tarfile.DIRTYPE if content is None else tarfile.SYMTYPE
                info.linkname = content or ""
                tar.addfile(info)
    return path
