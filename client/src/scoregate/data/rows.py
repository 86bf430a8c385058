"""
A row of a data set: its pictures, its prompt, its options and its other columns.

`--image-column` and `--prompt-column` set other columns than `image` and `prompt`, `--frames-column` one
with lists of frames or views. Further columns:

* `references`, `source`: up to three pictures, and one, written like `image`; sent if a metric uses them.
  In CSV, `references` is one path.
* that of `--metrics-column`: the metrics of a row, a list or names with commas, of those that `-m` names.
  Without any, all of them.
* `METRIC.OPTION`, such as `ocr.text`: one option. In CSV it is JSON, else a text; always a text if the
  option takes one. `--option-column ocr.text=wanted` sets another column.
* `METRIC`, such as `geneval`, or `options`: an object of options, or one by metric. In CSV it is JSON.
* `question_set`: the id of a set of questions, for each metric that has questions.
"""

import json
import os
import re
from base64 import b64decode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from errno import ENOENT
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any
from unicodedata import normalize

from scoregate.errors import BadImageError, reason_of
from scoregate.images import Frames, digest, is_url, of_pillow
from scoregate.items import Item
from scoregate.records import LFS, POINTER, json_cell, json_or_text

FORMAT_STARTS = {
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
GENERAL_BRANDS = (b"mif1", b"msf1")  # brands of any coding, which a compatible brand names
FORMAT_HEAD_BYTES = 256  # bytes in which a file has its format

JPEGS = {".jfif", ".jif", ".jpe", ".jpeg", ".jpg"}
IMAGES = frozenset({*JPEGS, ".avif", ".bmp", ".gif", ".heic", ".heif", ".png", ".tif", ".tiff", ".webp"})
VIDEOS = frozenset({".m4v", ".mov", ".mp4"})
SHARDS = (".tar", ".parquet", ".arrow")  # img2dataset writes Parquet without pictures next to a tar

RELATED_COLUMNS = ("references", "source")  # columns of pictures for metrics that use them
QUESTION_SET = "question_set"
Scalar = str | int | float | bool | None

MAX_PROMPT = 4000  # characters; the service refuses the whole request for a longer one
OUTSIDE_REASON = "lies outside the data set's folder, and --any-path is not given"
MAX_PATH = 4096  # characters, of Linux
MIN_BASE64_CHARACTERS = 64  # characters of a picture in base64; a shorter text is a path
DATA_URL = re.compile(r"data:[^,]{0,100};base64,")
UNUSABLE = re.compile("\0|[\ud800-\udfff]")


def kind_of(image: bytes) -> str:
    """Return the format by its MIME subtype; empty if it is not a picture or a film."""
    if image[:4] == b"RIFF" and image[8:12] == b"WEBP":
        return "webp"
    if image[:2] == b"BM" and not any(image[6:10]):  # two letters alone may begin any text
        return "bmp"
    if image[4:8] == b"ftyp":
        return next((kind for kind, brands in BRANDS.items() if brand_of(image).startswith(brands)), "")
    return next((kind for start, kind in FORMAT_STARTS.items() if image.startswith(start)), "")


def brand_of(file: bytes) -> bytes:
    """Return the brand of a file; where it is a general one, the first compatible one of a coding."""
    end = min(int.from_bytes(file[:4], "big"), FORMAT_HEAD_BYTES)
    named = [file[8:12], *(file[at : at + 4] for at in range(16, end, 4))]
    codings = (brand for brand in named if brand.startswith((*BRANDS["avif"], *BRANDS["heic"])))
    return next(codings, named[0]) if named[0] in GENERAL_BRANDS else named[0]


def readable(image: bytes) -> bytes:
    """
    Return the pixels of a HEIC picture as a BMP, and any other file unchanged.

    Raises:
        ValueError: the package `pillow-heif` is not installed, or cannot read the picture; or it is a pointer
            in place of the picture.
    """
    if image.startswith(LFS):
        raise ValueError(POINTER)
    if kind_of(image) != "heic":
        return image
    try:
        from pillow_heif import open_heif
    except ModuleNotFoundError:
        raise ValueError("is HEIC: pip install pillow-heif, and it is converted") from None
    try:
        return of_pillow(open_heif(image).to_pillow())
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
        image_file: its file or its bytes; with *frames* the first of these.
        columns: further columns that hold a text, a number, a truth value, or a list of these.
        related: the non-empty cells of the columns `references` and `source`.
        folder: the base of relative paths in these cells, and the only folder that files are read from.
        any_path: also read files elsewhere.
        frames: the views of one scene, if the data set has lists of them.
        options: of this row alone, by metric.
        metrics: those that score it, in place of those of the run.
        shard: the name of its file, unless *image* has it.
        sha256: of its pictures, once they are read, see `digest`.
    """

    number: int
    image: str | None = None
    prompt: str | None = None
    image_file: Path | bytes = b""
    columns: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    related: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    any_path: bool = False
    frames: Sequence[Path | bytes] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    shard: str = ""
    metrics: Sequence[str] = ()
    sha256: str | None = None

    @property
    def place(self) -> str:
        """The row for people: its number, its shard and its picture."""
        return ", ".join(filter(None, [f"row {self.number}", self.shard, self.image]))

    @cached_property
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
        return self.bytes_of(self.image_file)

    def read_frames(self) -> list[bytes]:
        """Return the bytes of the picture, or of all frames.  Raises as `read`."""
        return [self.bytes_of(image) for image in self.frames or [self.image_file]]

    def read_related(self, column: str) -> list[bytes]:
        """
        Return the bytes of the pictures in `references` or `source`, if the row has any.

        Raises:
            ValueError: one of them is missing or no picture; the error names the column.
        """
        cell = self.related.get(column, [])
        try:
            cells = cell if isinstance(cell, list) else [cell]
            return [self.bytes_of(image_of(each, self.folder)[1]) for each in cells]
        except OSError as exc:
            raise ValueError(f"column {column}: {exc.filename or cell}: {exc.strerror or exc}") from exc
        except ValueError as exc:
            raise ValueError(f"column {column} {exc}") from exc

    def item(self, uses: Sequence[str], orient: str | None, max_bytes: int | None) -> tuple[Item, str]:
        """
        Return the row as it is sent, and the `digest` of its pictures.

        Args:
            uses: the columns of related pictures that are sent along.
            orient: how pictures are rotated.
            max_bytes: of a file; a larger one would let the service reject the whole request.

        Raises:
            ValueError: it cannot be sent; the message begins with its place.
        """
        if self.fault:
            raise ValueError(self.fault)
        try:
            files = self.read_frames()
            related = {column: self.read_related(column) for column in uses if column in self.related}
            check_images(files, related, max_bytes)
        except OSError as exc:
            raise ValueError(f"{self.place}: {exc.strerror or exc}") from exc
        except ValueError as exc:
            raise ValueError(f"{self.place}: {exc}") from exc
        references, source = related.get("references", ()), related.get("source", ())
        item = Item(
            prompt=self.prompt,
            image=Frames(files) if self.frames else files[0],
            options=self.options,
            metrics=self.metrics,
            references=references,
            source=next(iter(source), None),
            orient=orient,
        )
        return item, digest(*files, *references, *source[:1])

    def bytes_of(self, image: Path | bytes) -> bytes:
        """Return the bytes of a picture.  Raises as `read`."""
        if isinstance(image, bytes):
            return readable(image)
        image = existing(image)
        if not image.is_file():  # a device or a pipe may never end
            raise FileNotFoundError(ENOENT, "no such file", image)
        if not (self.any_path or is_below(image, self.folder)):
            raise ValueError(OUTSIDE_REASON)
        return readable(image.read_bytes())


def check_images(
    files: Sequence[bytes], related: Mapping[str, Sequence[bytes]], max_bytes: int | None
) -> None:
    """Raise `ValueError` if a file is empty, too large, or no picture by its first bytes."""
    if not all(files):
        raise ValueError("the picture is empty")
    if not all(map(kind_of, files)):
        raise ValueError("the file is no picture by its first bytes")
    if wrong := [column for column, others in related.items() if not all(map(kind_of, others))]:
        raise ValueError(f"column {wrong[0]}: a file is no picture by its first bytes")
    largest = max(map(len, [*files, *chain.from_iterable(related.values())]))
    if max_bytes is not None and largest > max_bytes:
        raise ValueError(f"a file has {largest} bytes, and the service takes {max_bytes}")


def related_in(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the non-empty cells of the columns of related pictures."""
    return {column: values[column] for column in RELATED_COLUMNS if not empty(values.get(column))}


def dumped_options(options: Mapping[str, Any]) -> str:
    """Return options as text that is equal for equal ones."""
    return json.dumps(options, sort_keys=True) if options else ""


def existing(file: Path) -> Path:
    """Return *file*; if there is none, one whose name has its accents in another form."""
    if file.exists():
        return file
    others = (Path(normalize(form, str(file))) for form in ("NFC", "NFD"))
    return next((other for other in others if other.exists()), file)


def is_below(file: Path, folder: Path) -> bool:
    """Return True if a file is below *folder*; links are followed."""
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))


def image_of(cell: Any, folder: Path) -> tuple[str, Path | bytes]:
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
    if len(text) < MIN_BASE64_CHARACTERS:
        return None
    try:
        data = b64decode(text if text.isalnum() else "".join(text.split()), validate=True)
    except ValueError:
        return None
    return data if kind_of(data) else None


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


# --- cells that are more than a text --------------------------------------------------------------


def in_json(
    values: Mapping[str, Any], texts: Collection[str] = (), objects: Collection[str] = ()
) -> dict[str, Any]:
    """
    Return the cells of a CSV row, with lists that results keep in place of their JSON.

    Args:
        texts: columns that stay texts.
        objects: columns with any JSON; those of options are parsed by `options_in`.
    """
    found = {name: cell if name in texts else json_cell(cell) for name, cell in values.items()}
    return {
        name: cell if name in objects or is_column(cell) else values[name] for name, cell in found.items()
    }


def is_column(cell: Any) -> bool:
    """Return True for a cell that results keep: a text, a number, a truth value, or a list of these."""
    return isinstance(cell, Scalar) or (isinstance(cell, list) and all(isinstance(c, Scalar) for c in cell))


def options_in(
    values: Mapping[str, Any],
    metrics: Sequence[str],
    asking: Sequence[str] = (),
    renamed: Mapping[str, str] | None = None,
    *,
    in_csv: bool = False,
    texts: Collection[str] = (),
) -> dict[str, dict[str, Any]]:
    """
    Return the options that a row's cells give, by metric.

    The column `options` has an object by metric, a column `METRIC` the options of one, and a column
    `METRIC.OPTION` one option.  The column `question_set` is that option of each metric of *asking*.

    Args:
        metrics: all others are ignored.
        renamed: further columns, by `METRIC.OPTION`.
        in_csv: a cell of one option is JSON, or else a text.
        texts: options that are always texts, by `METRIC.OPTION`.

    Raises:
        ValueError: a cell is not an object of options, or not JSON.
    """
    found: dict[str, dict[str, Any]] = {}
    if not empty(cell := values.get("options")):
        for metric, each in in_options(json_cell(cell)).items():
            if metric in metrics:
                found[metric] = of_metric(each, f"column options, {metric}")
    for metric in metrics:
        if empty(cell := values.get(metric)):
            continue
        cell = json_cell(cell)
        if isinstance(cell, Mapping) or in_braces(cell):
            found[metric] = {**found.get(metric, {}), **of_metric(cell, f"column {metric}")}
    # An output of a rubric is a metric with a full stop in its name.
    dotted = {name: name for name in values if name.rpartition(".")[0] in metrics and name not in metrics}
    for name, column in {**dotted, **(renamed or {})}.items():
        metric, _, option = name.rpartition(".")
        if metric in metrics and not empty(cell := values.get(column)):
            of_it = option_of(cell, is_text=name in texts) if in_csv else cell
            found.setdefault(metric, {})[option] = of_it
    if not empty(cell := values.get(QUESTION_SET)):
        for metric in asking:
            found.setdefault(metric, {}).setdefault(QUESTION_SET, cell)
    check_json(found)
    return found


def names_in(cell: Any) -> list[str]:
    """Return the names in a cell: a list, or a text with commas."""
    names = cell if isinstance(cell, list) else str(cell or "").split(",")
    return list(dict.fromkeys(name for each in names if (name := str(each).strip())))


def option_of(cell: Any, *, is_text: bool) -> Any:
    """Return the value of an option in a cell of CSV: JSON, or else a text; always a text if it *is_text*."""
    value = json_or_text(cell) if isinstance(cell, str) else cell
    return cell if is_text and not isinstance(value, str) else value


def in_options(cell: Any) -> Mapping[str, Any]:
    """Return the content of the column `options`.  Raises `ValueError`."""
    if empty(cell):
        return {}
    if not isinstance(cell, Mapping):
        raise ValueError("column options is no object of options by metric")
    return cell


def of_metric(cell: Any, place: str) -> dict[str, Any]:
    """Return the options of one metric.  Raises `ValueError`, which begins with *place*."""
    if not isinstance(cell, Mapping):
        raise ValueError(f"{place} is no object of options")
    return {name: value for name, value in cell.items() if value is not None}


def check_json(options: Mapping[str, Any]) -> None:
    """Raise `ValueError` for options that a request cannot have."""
    try:
        json.dumps(options, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise ValueError(f"its options are no JSON ({exc})") from None


def in_braces(cell: Any) -> bool:
    """Return True for a text that begins as an object does."""
    return isinstance(cell, str) and cell.lstrip().startswith("{")


def empty(cell: Any) -> bool:
    """Return True for a cell without a value; an array has one."""
    return cell is None or (isinstance(cell, (str, list)) and not cell)
