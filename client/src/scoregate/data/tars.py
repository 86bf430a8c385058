"""Files in a tar, one after the other; damage and headers that would take up memory are errors."""

import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from math import inf
from pathlib import Path
from typing import Any, BinaryIO, cast

from scoregate.data.rows import is_hidden
from scoregate.records import opened

MAX_FILE = 2**34  # bytes in a tar; `tarfile` also skips data that is not there, block by block
MAX_HEADER = 2**16  # bytes of a long name or of attributes, which `tarfile` reads at once
MAX_HEADERS = 2**20  # bytes of all headers of a file, with the map of a sparse one
MAX_CHAIN = 16  # headers of a file, which `tarfile` reads by recursion
BLOCK = 2**16  # bytes that are read from a tar at once
ZEROS = 2**20  # bytes behind the end that are read at once

MEMBER = re.compile(r"((?:.*/)?[^/.]+)\.([^/]+)", re.DOTALL)  # the key and the suffix, as in WebDataset


class Source:
    """The bytes of a tar; while *left* is finite, reading more of them is an error."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.left = file, inf

    def read(self, size: int) -> bytes:
        """Return up to *size* bytes.  Raises `tarfile.ReadError`."""
        if self.left <= 0:
            raise tarfile.ReadError(f"headers of more than {MAX_HEADERS} bytes")
        data = self._file.read(size)
        self.left -= len(data)
        return data


class Tar(tarfile.TarFile):
    """
    A tar; *chain* is the number of headers of a file that are being read.

    Raises:
        tarfile.ReadError: a file has more headers than `MAX_CHAIN`, or larger ones than `MAX_HEADERS`.
    """

    chain = 0

    @contextmanager
    def header(self) -> Iterator[None]:
        """Count a header that is read in this context, and bound the bytes of all of one file."""
        source: Source = self.fileobj.fileobj  # type: ignore[attr-defined]
        source.left = source.left if self.chain else MAX_HEADERS
        self.chain += 1
        try:
            if self.chain > MAX_CHAIN:
                raise tarfile.ReadError(f"a file with more than {MAX_CHAIN} headers")
            yield
        finally:
            self.chain -= 1
            source.left = source.left if self.chain else inf


class Header(tarfile.TarInfo):
    """
    A header of a tar file, without what would break off reading unnoticed or take up memory.

    Raises:
        tarfile.ReadError: it is damaged, or has a long name or attributes of more than `MAX_HEADER` bytes.
    """

    @classmethod
    def fromtarfile(cls, tar: Tar) -> "Header":  # type: ignore[override]
        """Return the next header; `tarfile` calls it again for the one that a long name is of."""
        with tar.header():
            return super().fromtarfile(tar)

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "Header":
        """Return the header in a block; `tarfile` takes a damaged one for the file's end."""
        if not buf:
            raise tarfile.ReadError("no mark of its end, it may be cut off")
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as exc:
            if any(buf):
                raise tarfile.ReadError(f"damaged header ({exc})") from exc
            raise  # the block of zeros at the end
        if header.size < 0 or (header.size > MAX_HEADER and header.type in EXTENDED):
            raise tarfile.ReadError(f"a header of {header.size} bytes")
        return header


EXTENDED = {
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
}
Member = tuple[str, str, tarfile.TarInfo, tarfile.TarFile]


def members(shard: Path) -> Iterator[Member]:
    """Yield the key, the suffix and the header of each file in a tar; others have no part in a sample."""
    with (  # a stream: seeks cost more
        opened(shard) as file,
        Tar.open(fileobj=cast(Any, Source(file)), mode="r|", bufsize=BLOCK, tarinfo=Header) as tar,
    ):
        offset = -1
        while header := tar.next():
            if header.offset <= offset:
                raise tarfile.ReadError("a header that leads back")
            if header.size > MAX_FILE:
                raise tarfile.ReadError(f"a file of {header.size} bytes")
            offset = header.offset
            tar.members = []  # type: ignore[attr-defined]  # else it keeps every header
            found = MEMBER.fullmatch(header.name)
            if found and not header.isdir() and is_part(found[1]):
                yield found[1], f".{found[2]}".lower(), header, tar
        while block := tar.fileobj.read(ZEROS):
            if block.strip(b"\0"):
                raise tarfile.ReadError("data after the mark of its end")


def is_part(key: str) -> bool:
    """Return False for a key that WebDataset skips, and for one in a hidden folder."""
    *folders, name = key.split("/")
    return not (name.startswith("__") or any(map(is_hidden, folders)))


def groups(shard: Path) -> Iterator[tuple[str, Iterator[Member]]]:
    """Return the samples of a tar, each with its key: neighbouring files with the same key."""
    return groupby(members(shard), lambda found: found[0])
