"""
Data sets in shards: tar files as WebDataset writes them, Parquet, and Arrow files as `datasets` saves them.

A shard is read from its beginning, and its samples are yielded one by one.  Nothing is unpacked to disk.
"""

import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from itertools import groupby, islice
from math import inf
from pathlib import Path
from typing import Any, BinaryIO, cast

from scoregate.data.folders import is_hidden
from scoregate.data.rows import IMAGES, SHARDS, VIDEOS
from scoregate.errors import InputError
from scoregate.records import (
    MAX_LINE,
    Record,
    arrow,
    arrow_batches,
    json_record,
    kind,
    of_batches,
    opened,
    parquet,
    stem,
)

MAX_SHARDS = 100_000  # shards of a pattern
MAX_TEXT = 2**20  # bytes of a prompt or of JSON
MAX_IMAGE = MAX_LINE
DATA, SPLITS = "data", "dataset_dict.json"  # Hugging Face's hub has one, a saved `DatasetDict` the other

RANGE = re.compile(r"\{(\d{1,9})\.\.(\d{1,9})\}")
IMAGE, TEXT, JSON = "picture", ".txt", ".json"


MAX_FILE = 2**34  # bytes in a tar; `tarfile` also skips data that is not there, block by block
MAX_HEADER = 2**16  # bytes of a long name or of attributes, which `tarfile` reads at once
MAX_HEADERS = 2**20  # bytes of all headers of a file, with the map of a sparse one
MAX_CHAIN = 16  # headers of a file, which `tarfile` reads by recursion
BLOCK_BYTES = 2**16  # bytes that are read from a tar at once
TRAILING_BYTES = 2**20  # bytes behind the end that are read at once

MEMBER = re.compile(r"((?:.*/)?[^/.]+)\.([^/]+)", re.DOTALL)  # the key and the suffix, as in WebDataset

Member = tuple[str, str, tarfile.TarInfo, tarfile.TarFile]


class SampleError(ValueError):
    """A sample cannot be scored; the rest of its shard can be read."""


def shards_of(path: Path, more: Sequence[Path] = ()) -> list[Path]:
    """
    Return the shards that *path* names, in order; none if it is no data set in shards.

    Args:
        path: a tar or Arrow file, a folder of shards or with one, or a pattern: `shard-{000..999}.tar`, or
            `shards/*.tar`.
        more: further ones, all of one data set; then a Parquet file is a shard, too.

    Raises:
        InputError: a file of a pattern is missing, one of several paths has no shards, or two shards have the
            same name; or pyarrow is not installed.
    """
    found = named_by(path)
    if more:
        parts = [(each, named_by(each) or parquet_alone(each)) for each in (path, *more)]
        if others := [each for each, shards in parts if not shards]:
            raise InputError(
                f"{others[0]}: is no shard; name the data sets of several generators as NAME=PATH"
            )
        found = [shard for _, shards in parts for shard in shards]
    if set(map(kind, found)) - {".tar"}:
        arrow()
    if len(set(map(stem, found))) < len(found):
        raise InputError(f"{path}: two shards have the same name")
    return found


def named_by(path: Path) -> list[Path]:
    """Return the shards of one path; none if it is no data set in shards.  Raises as `shards_of`."""
    if not path.exists() and (RANGE.search(str(path)) or has_magic(str(path))):
        return listed(path)
    if path.is_dir():
        return in_folder(path) or below(path)
    return [path] if kind(path) in (".tar", ".arrow") and path.exists() else []


def parquet_alone(path: Path) -> list[Path]:
    """Return a Parquet file, which is a table unless it is one of several shards."""
    return [path] if kind(path) == ".parquet" and path.is_file() else []


def listed(pattern: Path) -> list[Path]:
    """Return the files of a pattern.  Raises `InputError`."""
    text = str(pattern)
    names = expanded(text) if RANGE.search(text) else iter(sorted(glob(text)))
    files = [Path(name) for name in islice(names, MAX_SHARDS + 1)]
    if not (files or RANGE.search(text)):
        raise InputError(f"{pattern}: there is no such file")
    if len(files) > MAX_SHARDS:
        raise InputError(f"{pattern}: more than {MAX_SHARDS} files")
    if not files or not all(kind(file) in SHARDS for file in files):
        raise InputError(f"{pattern}: shards have names that end in {', '.join(SHARDS)}")
    if missing := [file for file in files if not file.is_file()]:
        raise InputError(f"{pattern}: {len(missing)} of {len(files)} files are missing, first {missing[0]}")
    return files


def expanded(pattern: str) -> Iterator[str]:
    """Yield the names of a pattern; a number has at least the digits of the first one."""
    if not (found := RANGE.search(pattern)):
        yield pattern
        return
    first, last = found.groups()
    for number in range(int(first), int(last) + 1):
        for rest in expanded(pattern[found.end() :]):
            yield f"{pattern[: found.start()]}{number:0{len(first)}}{rest}"


def in_folder(folder: Path) -> list[Path]:
    """Return the shards directly in *folder*, of the first of `SHARDS` that is there."""
    files = [file for file in folder.iterdir() if kind(file) in SHARDS and file.is_file()]
    first = min((SHARDS.index(kind(file)) for file in files), default=0)
    return sorted(file for file in files if kind(file) == SHARDS[first])


def below(folder: Path) -> list[Path]:
    """
    Return the shards in `data/`, as data sets lie on Hugging Face's hub, or in the split of a `DatasetDict`.

    Raises:
        InputError: there are several splits.
    """
    if not (folder / SPLITS).is_file():
        return in_folder(folder / DATA) if (folder / DATA).is_dir() else []
    splits = {each: in_folder(each) for each in sorted(folder.iterdir()) if each.is_dir()}
    found = {each: shards for each, shards in splits.items() if shards}
    if len(found) > 1:
        raise InputError(f"{folder}: there are several splits, name one of {', '.join(map(str, found))}")
    return next(iter(found.values()), [])


def samples_of(shard: Path, image_part: str = "") -> Iterator[Record]:
    """
    Yield the samples of a shard.  Where it cannot be read any further, the last record has a fault.

    Args:
        image_part: of several pictures of a sample in a tar, `left` for `KEY.left.png`.
    """
    number, name = 0, None
    try:
        reader = READERS.get(kind(shard))  # tars have none
        for record in reader(shard) if reader else tar_samples(shard.name, opened(shard), image_part):
            number, name = record.number, record.name
            yield record
    except Exception as exc:  # libraries that read a damaged file raise almost anything
        place = f"after {name}" if name else f"from row {number + 1} on"
        yield Record(number + 1, fault=f"the shard cannot be read {place}: {str(exc) or type(exc).__name__}")


def tar_samples(shard: str, file: BinaryIO, image_part: str = "") -> Iterator[Record]:
    """Yield the samples of a tar, whose names begin with that of the *shard*.  Closes its *file*."""
    for number, (key, found) in enumerate(groups(file), 1):
        name = f"{shard}/{key}"
        try:
            values = values_of(name, content_of(found, image_part))
        except SampleError as exc:
            yield Record(number, fault=str(exc), name=name)
        else:
            yield Record(number, values, name=name)


def content_of(found: Iterable[Member], image_part: str = "") -> dict[str, bytes]:
    """Return the picture, the text and the JSON of a sample.  Raises `SampleError`."""
    parts: dict[str, bytes] = {}
    fault, longer = "", list[str]()
    named = f".{image_part.lower()}" if image_part else ""
    for _, suffix, header, tar in found:
        before, dot, last = suffix.rpartition(".")
        is_image = dot + last in IMAGES | VIDEOS
        part = IMAGE if is_image and before == named else "" if is_image else suffix
        longer += [suffix] if is_image and before != named else []
        limit = {IMAGE: MAX_IMAGE, TEXT: MAX_TEXT, JSON: MAX_TEXT}.get(part)
        if limit is None:
            continue
        if part in parts:
            fault = f"it has two files for the {part}"
        elif header.size > limit:
            fault = f"{suffix} has {header.size} bytes, and {limit} are allowed"
        elif not (header.isreg() and (file := tar.extractfile(header))):
            fault = f"{suffix} is a link"
        else:
            parts[part] = file.read()
    if fault or IMAGE not in parts:
        raise SampleError(fault or f"it has no picture{hint(image_part, longer)}")
    return parts


def hint(image_part: str, suffixes: Sequence[str]) -> str:
    """Return what to do about pictures with other *suffixes* than those that are read, for an error."""
    if image_part:
        return f" {image_part}" + (f"; there are {', '.join(suffixes)}" if suffixes else "")
    if not suffixes:
        return ""
    part = suffixes[0].rpartition(".")[0].lstrip(".")
    return (
        f": a key ends at the first full stop of a name, and the rest is {', '.join(suffixes)};"
        f" rename the files, or take one by --image-part {part}"
    )


def values_of(name: str, parts: Mapping[str, bytes]) -> dict[str, Any]:
    """
    Return a sample as a row: the fields of its JSON, with its picture and prompt.

    The prompt is `prompt` in the JSON, else the text file, else `caption` in the JSON.

    Raises:
        SampleError: the text is not UTF-8, or the JSON no object.
    """
    if not name.isprintable():
        raise SampleError("its name has characters that are not text")
    record = json_record(1, parts[JSON]) if JSON in parts else Record(1)
    if record.fault:
        raise SampleError(f"its JSON is {record.fault}")
    values = dict(record.values)
    try:
        text = parts[TEXT].decode("utf-8-sig").strip() if TEXT in parts else None
    except UnicodeDecodeError:
        raise SampleError("its text is not UTF-8") from None
    prompts = [values.get("prompt"), text, values.get("caption")]
    prompt = next((each for each in prompts if each not in (None, "")), text)
    image = {"bytes": parts[IMAGE], "path": name}
    return {**values, "image": image} | ({} if prompt is None else {"prompt": prompt})


def arrow_rows(shard: Path) -> Iterator[Record]:
    """Yield the rows of an Arrow file."""
    return of_batches(arrow_batches(shard))


READERS: Mapping[str, Callable[[Path], Iterator[Record]]] = {
    ".parquet": parquet,
    ".arrow": arrow_rows,
}


# --- files in a tar, one after the other: damage, and headers that would take up memory, are errors ----


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
        if header.size < 0 or (header.size > MAX_HEADER and header.type in EXTENDED_HEADERS):
            raise tarfile.ReadError(f"a header of {header.size} bytes")
        return header


EXTENDED_HEADERS = {
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
}


def members(file: BinaryIO) -> Iterator[Member]:
    """Yield the key, the suffix and the header of each file in a tar; others have no part in a sample."""
    with (  # a stream: seeks cost more
        file,
        Tar.open(fileobj=cast(Any, Source(file)), mode="r|", bufsize=BLOCK_BYTES, tarinfo=Header) as tar,
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
        while block := tar.fileobj.read(TRAILING_BYTES):
            if block.strip(b"\0"):
                raise tarfile.ReadError("data after the mark of its end")


def is_part(key: str) -> bool:
    """Return False for a key that WebDataset skips, and for one in a hidden folder."""
    *folders, name = key.split("/")
    return not (name.startswith("__") or any(map(is_hidden, folders)))


def groups(file: BinaryIO) -> Iterator[tuple[str, Iterator[Member]]]:
    """Return the samples of a tar, each with its key: neighbouring files with the same key."""
    return groupby(members(file), lambda found: found[0])
