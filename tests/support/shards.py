"""Data sets: tar files as WebDataset writes them, and what their rows hold."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from scoregate.data.datasets import Dataset


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


def pairs(dataset: Dataset) -> list[tuple[str | None, str | None, bytes]]:
    """Image, prompt and bytes of each row, which all can be read."""
    rows = list(dataset)
    assert dataset.count() in (None, len(rows))
    assert [""] * len(rows) == [row.fault for row in rows]
    assert list(range(1, len(rows) + 1)) == [row.number for row in rows]
    return [(row.image, row.prompt, row.read()) for row in rows]
