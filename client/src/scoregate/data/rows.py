"""A row of a data set: its pictures, its prompt, its options and its other columns."""

import json
import os
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from errno import ENOENT
from hashlib import sha256
from pathlib import Path
from typing import Any
from unicodedata import normalize

from scoregate.errors import BadImageError, reason_of
from scoregate.images import is_url, of_pillow
from scoregate.records import POINTER, is_pointer

STARTS = {
    b"\xff\xd8\xff": "jpeg",
    b"\x89PNG\r\n": "png",
    b"GIF8": "gif",
    b"II*\0": "tiff",
    b"MM\0*": "tiff",
    b"II+\0": "tiff",
    b"MM\0+": "tiff",
}
BRANDS = {
    "avif": (b"avif", b"avis"),
    "heic": (b"hei", b"hev"),
    "mp4": (b"iso", b"mp4", b"avc1", b"M4V "),
}
GENERAL = (b"mif1", b"msf1")  # brands of any coding, which a compatible brand names
HEAD = 256  # bytes in which a file has its format

JPEGS = {".jfif", ".jif", ".jpe", ".jpeg", ".jpg"}
PICTURES = frozenset({*JPEGS, ".avif", ".bmp", ".gif", ".heic", ".heif", ".png", ".tif", ".tiff", ".webp"})
VIDEOS = frozenset({".m4v", ".mov", ".mp4"})

RELATED = ("references", "source")  # columns of pictures for metrics that use them
MAX_PROMPT = 4000  # characters; the service refuses the whole request for a longer one
OUTSIDE = "lies outside the data set's folder, and --any-path is not given"
MAX_PATH = 4096  # characters, of Linux
SHORTEST = 64  # characters of a picture in base64; a shorter text is a path
DATA_URL = re.compile(r"data:[^,]{0,100};base64,")
UNUSABLE = re.compile("\0|[\ud800-\udfff]")


def kind_of(picture: bytes) -> str:
    """Return the format by its MIME subtype; empty if it is not a picture or a film."""
    if picture[:4] == b"RIFF" and picture[8:12] == b"WEBP":
        return "webp"
    if picture[:2] == b"BM" and not any(picture[6:10]):  # two letters alone may begin any text
        return "bmp"
    if picture[4:8] == b"ftyp":
        return next((kind for kind, brands in BRANDS.items() if brand_of(picture).startswith(brands)), "")
    return next((kind for start, kind in STARTS.items() if picture.startswith(start)), "")


def brand_of(file: bytes) -> bytes:
    """Return the brand of a file; where it is a general one, the first compatible one of a coding."""
    end = min(int.from_bytes(file[:4], "big"), HEAD)
    named = [file[8:12], *(file[at : at + 4] for at in range(16, end, 4))]
    codings = (brand for brand in named if brand.startswith((*BRANDS["avif"], *BRANDS["heic"])))
    return next(codings, named[0]) if named[0] in GENERAL else named[0]


def readable(picture: bytes) -> bytes:
    """
    Return the pixels of a HEIC picture as a BMP, and any other file unchanged.

    Raises:
        ValueError: the package `pillow-heif` is not installed, or cannot read the picture; or it is a pointer
            in place of the picture.
    """
    if is_pointer(picture):
        raise ValueError(POINTER)
    if kind_of(picture) != "heic":
        return picture
    try:
        from pillow_heif import open_heif
    except ModuleNotFoundError:
        raise ValueError("is HEIC: pip install pillow-heif, and it is converted") from None
    try:
        return of_pillow(open_heif(picture).to_pillow())
    except (BadImageError, OSError, ValueError, RuntimeError, EOFError) as exc:
        raise ValueError(f"is HEIC that cannot be read: {reason_of(exc)}") from None


@dataclass(frozen=True)
class Row:
    """
    One picture and its prompt.  With a *fault*, which names the row and the column, it can't be scored.

    Attributes:
        prompt: None if the data set is read without prompts, or with a fault.
        number: counts from 1; in JSON Lines the line.
        image: the picture's name, for people and for finding the row again.
        picture: its file or its bytes; with *frames* the first of these.
        columns: further columns that hold a text, a number, a truth value, or a list of these.
        related: the non-empty cells of the columns `references` and `source`.
        folder: the base of relative paths in these cells, and the only folder that files are read from.
        any_path: also read files elsewhere.
        frames: the views of one scene, if the data set has lists of them.
        options: of this row alone, by metric.
        metrics: those that score it, in place of those of the run.
        shard: the name of its file, unless *image* has it.
    """

    number: int
    image: str | None = None
    prompt: str | None = None
    picture: Path | bytes = b""
    columns: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    related: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    any_path: bool = False
    frames: Sequence[Path | bytes] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    shard: str = ""
    metrics: Sequence[str] = ()

    @property
    def place(self) -> str:
        """The row for people: its number, its shard and its picture."""
        return ", ".join(filter(None, [f"row {self.number}", self.shard, self.image]))

    @property
    def key(self) -> tuple[str | None, str | None, str]:
        """The key of a row, which does not depend on its position in the data set."""
        return self.image, self.prompt, dumped_options(self.options)

    def read(self) -> bytes:
        """
        Return the picture's bytes.

        Raises:
            OSError: there is no such file.
            ValueError: it is outside the folder, or HEIC that cannot be converted.
        """
        return self.bytes_of(self.picture)

    def read_frames(self) -> list[bytes]:
        """Return the bytes of the picture, or of all frames.  Raises as `read`."""
        return [self.bytes_of(picture) for picture in self.frames or [self.picture]]

    def read_related(self, column: str) -> list[bytes]:
        """
        Return the bytes of the pictures in `references` or `source`, if the row has any.

        Raises:
            ValueError: one of them is missing or no picture; the error names the column.
        """
        cell = self.related.get(column, [])
        try:
            cells = cell if isinstance(cell, list) else [cell]
            return [self.bytes_of(picture_of(each, self.folder)[1]) for each in cells]
        except OSError as exc:
            raise ValueError(f"column {column}: {exc.filename or cell}: {exc.strerror or exc}") from exc
        except ValueError as exc:
            raise ValueError(f"column {column} {exc}") from exc

    def bytes_of(self, picture: Path | bytes) -> bytes:
        """Return the bytes of a picture.  Raises as `read`."""
        if isinstance(picture, bytes):
            return readable(picture)
        picture = existing(picture)
        if not picture.is_file():  # a device or a pipe may never end
            raise FileNotFoundError(ENOENT, "no such file", picture)
        if not (self.any_path or is_below(picture, self.folder)):
            raise ValueError(OUTSIDE)
        return readable(picture.read_bytes())


def dumped_options(options: Mapping[str, Any]) -> str:
    """Return options as text that is equal for equal ones."""
    return json.dumps(options, sort_keys=True) if options else ""


def is_hidden(name: str) -> bool:
    """Return True for the name of a hidden file or folder, or of the one that macOS adds to archives."""
    return (name.startswith(".") and name not in (".", "..")) or name == "__MACOSX"


def composed(name: str) -> str:
    """Return a name with its accents in one form (NFC); macOS and other systems write them in two."""
    return normalize("NFC", name)


def existing(file: Path) -> Path:
    """Return *file*; if there is none, one whose name has its accents in another form."""
    if file.exists():
        return file
    others = (Path(normalize(form, str(file))) for form in ("NFC", "NFD"))
    return next((other for other in others if other.exists()), file)


def is_below(file: Path, folder: Path) -> bool:
    """Return True if a file is below *folder*; links are followed."""
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))


def picture_of(cell: Any, folder: Path) -> tuple[str, Path | bytes]:
    """Return a picture's name and, if given, its bytes.  Raises `ValueError`."""
    if isinstance(cell, Mapping) and cell.keys() & {"bytes", "path"}:  # Hugging Face's Image
        data, path = cell.get("bytes"), cell.get("path")
        if isinstance(data, bytes):
            return (path if isinstance(path, str) and path else digest(data)), data
        cell = path
    if isinstance(cell, bytes):
        return digest(cell), cell
    if cell is None or cell == "":
        raise ValueError("is missing")
    if not isinstance(cell, str) or UNUSABLE.search(cell):
        raise ValueError("is no path of a file")
    if (data := in_base64(cell)) is not None:
        return digest(data), data
    if len(cell) > MAX_PATH:
        raise ValueError("is neither a path of a file nor a picture in base64")
    if is_url(cell):
        raise ValueError("is a URL: download it, the command reads files of the data set only")
    return cell, folder / cell


def in_base64(cell: str) -> bytes | None:
    """Return the picture in a text of base64 or a data URL; None for any other text."""
    text = DATA_URL.sub("", cell, count=1)
    if len(text) < SHORTEST:
        return None
    try:
        data = b64decode(text if text.isalnum() else "".join(text.split()), validate=True)
    except ValueError:
        return None
    return data if kind_of(data) else None


def digest(data: bytes, *related: bytes) -> str:
    """Return a hash that identifies a row's pictures."""
    name = sha256(data).hexdigest()
    if related:
        name = sha256("".join([name, *(sha256(each).hexdigest() for each in related)]).encode()).hexdigest()
    return f"sha256:{name}"


def prompt_fault(prompt: Any) -> str:
    """Return why the service would reject this prompt; empty if it would not."""
    if prompt is None:
        return "is missing"
    if not isinstance(prompt, str):
        return "is not a text"
    if not prompt.strip():
        return "is empty"
    if len(prompt) > MAX_PROMPT:
        return f"has {len(prompt)} characters, and {MAX_PROMPT} are allowed"
    return "has a character that is not text" if UNUSABLE.search(prompt) else ""
