"""Folders of pictures: with captions, with a file of prompts, or with the samples of GenEval."""

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any
from unicodedata import normalize

from scoregate.data.rows import (
    FORMAT_HEAD_BYTES,
    IMAGES,
    OUTSIDE_REASON,
    SHARDS,
    VIDEOS,
    Row,
    existing,
    is_below,
    is_column,
    kind_of,
    prompt_fault,
)
from scoregate.errors import InputError, NoColumnError
from scoregate.records import BROKEN, Record, check_regular, kind, opened, records

METADATA = ("metadata.jsonl", "metadata.csv", "metadata.parquet")  # Hugging Face's `imagefolder`
TEXTS = frozenset({".txt", ".json", ".jsonl", ".csv", ".tsv", ".md", ".html"})  # files that go with pictures
NAMED_PROMPTS = 3  # names in a file of prompts that an error shows
NUMBERED_NAME = re.compile(r"(.+)[_/][0-9]+", re.DOTALL)  # one of several pictures of a prompt
SAMPLE = re.compile(r"\d+\.(png|jpe?g|webp)", re.IGNORECASE)


def captioned(folder: Path, any_path: bool, of_all: str | None, no_prompt: bool) -> Iterator[Row]:
    """
    Yield the pictures and videos below *folder*.

    The prompt is *of_all*, or each one's text file; or there is none, by *no_prompt*.
    """
    files = sorted(image_files(folder))
    if not files:
        raise InputError(f"{folder}: no pictures, and no {' or '.join(METADATA)}")
    for number, file in enumerate(files, 1):
        name = file.relative_to(folder).as_posix()
        try:
            own = of_all is None and not no_prompt
            prompt = caption_of(file, folder, any_path) if own else of_all
        except (OSError, ValueError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else exc
            yield Row(number, name, fault=f"row {number}, {name}: its caption {file.stem}.txt: {why}")
        else:
            fault = "" if no_prompt else prompt_fault(prompt)
            yield Row(
                number,
                name,
                prompt,
                file,
                fault=fault and f"row {number}, {name}: its caption {fault}",
                folder=folder,
                any_path=any_path,
            )


def titled(folder: Path, expression: str, any_path: bool) -> Iterator[Row]:
    """Yield the pictures and videos below *folder* with the prompts in their names, see `prompt_in`."""
    files = sorted(image_files(folder))
    if not files:
        raise InputError(f"{folder}: no pictures")
    for number, file in enumerate(files, 1):
        name = file.relative_to(folder).as_posix()
        prompt = prompt_in(without_suffix(name), expression)
        why = "--prompt-from-name does not match" if prompt is None else prompt_fault(prompt)
        fault = f"row {number}, {name}: its name: {why}" if why else ""
        yield Row(number, name, prompt, file, fault=fault, folder=folder, any_path=any_path)


def prompted(
    folder: Path, file: Path, image_column: str, prompt_column: str, any_path: bool
) -> Iterator[Row]:
    """
    Yield the pictures and videos below *folder* with their prompts in *file*, and its other columns.

    The prompt of `cat` is also that of `cat_0.png` and `cat/0.png`.  A picture without a prompt is a row with
    a fault, and so is a prompt without a picture.  These are last.

    Raises:
        InputError: there is no picture, or no prompt of any; others as `prompts_in`.
    """
    prompts = prompts_in(file, image_column, prompt_column)
    files = {path.relative_to(folder).as_posix(): path for path in sorted(image_files(folder))}
    if not files:
        raise InputError(f"{folder}: no pictures")
    keys = {name: key_in(prompts, composed(name)) for name in files}
    if not any(key in prompts for key in keys.values()):
        named = ", ".join(islice(prompts, NAMED_PROMPTS)) or "nothing"
        raise InputError(
            f"{file} has no prompt of a picture in {folder}: it has those of {named}, and the first picture"
            f" is {next(iter(files))}"
        )
    alone = [name for name in prompts if name not in set(keys.values())]
    for number, name in enumerate([*files, *alone], 1):
        prompt, columns = prompts.get(keys.get(name, name), (None, {}))
        if name not in files:
            fault = f"{file.name} names it, and there is no such picture"
        elif keys[name] not in prompts:
            fault = f"{file.name} has no prompt of it"
        else:
            fault = f"its prompt {why}" if (why := prompt_fault(prompt)) else ""
        yield Row(
            number,
            name,
            prompt if isinstance(prompt, str) else None,
            files.get(name, b""),
            columns,
            fault=fault and f"row {number}, {name}: {fault}",
            folder=folder,
            any_path=any_path,
        )


def key_in(names: Collection[str], image: str) -> str:
    """Return the name that a picture goes by in *names*: its own, or that of several pictures."""
    stem = without_suffix(image)
    several = NUMBERED_NAME.fullmatch(stem)
    return next((key for key in (image, stem, several[1] if several else "") if key in names), stem)


def prompt_in(name: str, expression: str) -> str | None:
    """
    Return the prompt in a name, with underscores as spaces; None if the expression does not match.

    It is the group `prompt`, else the first group, else all that matches.
    """
    found = re.search(expression, name)
    if found is None:
        return None
    group = "prompt" if "prompt" in found.re.groupindex else min(1, found.re.groups)
    return (found[group] or "").replace("_", " ").strip()


def composed(name: str) -> str:
    """Return a name with its accents in one form (NFC); macOS and other systems write them in two."""
    return normalize("NFC", name)


def without_suffix(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(""))


def prompts_in(file: Path, image_column: str, prompt_column: str) -> dict[str, tuple[Any, dict[str, Any]]]:
    """
    Return the prompts in *file* by `composed` names of pictures: a JSON object, or a table with both columns.

    With each are the other columns of the table that results keep.

    Raises:
        InputError: it is neither, or a name stands there twice; the error has the row.
        OSError: it cannot be read.
    """
    columns = image_column, prompt_column
    found: dict[str, tuple[Any, dict[str, Any]]] = {}
    for row in json_pairs(file, columns) if kind(file) == ".json" else records(file):
        place = f"{file}, row {row.number}"
        if row.fault:
            raise InputError(f"{place}: {row.fault}")
        if missing := [column for column in columns if column not in row.values]:
            setting = "image_column" if missing[0] == image_column else "prompt_column"
            raise NoColumnError(place, missing[0], row.values, setting, columns)
        name, prompt = (row.values[column] for column in columns)
        if not isinstance(name, str) or not name:
            raise InputError(f"{place}: column {image_column} is no name of a picture")
        if composed(name) in found:
            raise InputError(f"{place}: {name} stands there twice")
        others = {key: cell for key, cell in row.values.items() if key not in columns and is_column(cell)}
        found[composed(name)] = prompt, others
    return found


def json_pairs(file: Path, columns: tuple[str, str]) -> Iterator[Record]:
    """Yield the names and values of a JSON object, those of a repeated name, too.  Raises `InputError`."""
    try:
        with opened(file) as content:
            pairs = json.loads(content.read(), object_pairs_hook=tuple)
    except (ValueError, RecursionError, *BROKEN) as exc:
        raise InputError(f"{file}: not JSON ({exc})") from exc
    if not isinstance(pairs, tuple):
        raise InputError(f"{file}: not a JSON object")
    for number, pair in enumerate(pairs, 1):
        yield Record(number, dict(zip(columns, pair, strict=True)))


def caption_of(image: Path, folder: Path, any_path: bool) -> str:
    """Return a picture's caption file.  Raises `OSError`, and `ValueError` if it is outside the data set."""
    caption = existing(image.with_suffix(".txt"))
    if not (any_path or is_below(caption, folder)):
        raise ValueError(OUTSIDE_REASON)
    check_regular(caption)
    try:
        return caption.read_text("utf-8-sig").strip()
    except UnicodeDecodeError as exc:
        raise ValueError("is not UTF-8") from exc


def image_files(folder: Path) -> Iterator[Path]:
    """Yield the pictures and videos below *folder*, by their suffixes, or else their content."""
    return filter(is_image, files_below(folder))


def files_below(folder: Path) -> Iterator[Path]:
    """
    Yield the files below *folder* that are not hidden, nor in a hidden folder.

    A folder with the suffix of a picture is one of them: it is an error, and not left out unnoticed.
    """
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_hidden(name)]
        odd = (name for name in folders if Path(name).suffix.lower() in IMAGES | VIDEOS)
        yield from (Path(place, name) for name in (*names, *odd) if not is_hidden(name))


def is_hidden(name: str) -> bool:
    """Return True for the name of a hidden file or folder, or of the one that macOS adds to archives."""
    return (name.startswith(".") and name not in (".", "..")) or name == "__MACOSX"


def is_image(file: Path) -> bool:
    """Return True for a file that would be read as a picture or a video by itself."""
    suffix = file.suffix.lower()
    if suffix in IMAGES | VIDEOS or suffix in TEXTS or suffix in SHARDS:
        return suffix in IMAGES | VIDEOS
    if not file.is_file():  # a pipe may never end
        return False
    try:
        with file.open("rb") as content:
            return bool(kind_of(content.read(FORMAT_HEAD_BYTES)))
    except OSError:
        return False


def left_out(folder: Path) -> list[str]:
    """Return the files below *folder* that are neither pictures nor texts."""
    others = (file for file in files_below(folder) if file.suffix.lower() not in TEXTS and not is_image(file))
    return sorted(file.relative_to(folder).as_posix() for file in others)


def captions_alone(folder: Path) -> list[str]:
    """Return the text files without a picture of the same name."""
    shown = {without_suffix(composed(str(file))) for file in image_files(folder)}
    texts = [file for file in files_below(folder) if file.suffix == ".txt"]
    alone = (file for file in texts if without_suffix(composed(str(file))) not in shown)
    return sorted(file.relative_to(folder).as_posix() for file in alone)


OF_A_PROMPT, SAMPLES, GENEVAL = "metadata.jsonl", "samples", "geneval"
NO_SAMPLE = f"sample, such as {SAMPLES}/0000.png"


def is_generated(folder: Path) -> bool:
    """Return True if *folder* has a numbered folder with a prompt's metadata."""
    return any((each / OF_A_PROMPT).is_file() for each in numbered_folders(folder))


def numbered_folders(folder: Path) -> Iterator[Path]:
    return (each for each in sorted(folder.iterdir()) if each.name.isdigit() and each.is_dir())


def samples(folder: Path) -> Iterator[tuple[Path, Path | None]]:
    """Yield each prompt's folder with each of its pictures, which have numbers as names; None without any."""
    for each in numbered_folders(folder):
        files = (each / SAMPLES).iterdir() if (each / SAMPLES).is_dir() else ()
        found: list[Path | None] = [*sorted(file for file in files if SAMPLE.fullmatch(file.name))]
        yield from ((each, file) for file in found or [None])


def generated(folder: Path, metrics: Sequence[str], any_path: bool) -> Iterator[Row]:
    """
    Yield the pictures; the metadata is an option of `geneval`, and its task the column `tag`.

    A prompt without pictures is a row with a fault.

    Raises:
        InputError: no prompt has a picture.
    """
    if not any(file for _, file in samples(folder)):
        raise InputError(f"{folder}: no prompt has a {NO_SAMPLE}")
    for number, (of_prompt, file) in enumerate(samples(folder), 1):
        name = (file or of_prompt / SAMPLES).relative_to(folder).as_posix()
        try:
            metadata = metadata_of(of_prompt / OF_A_PROMPT, folder, any_path)
        except (OSError, ValueError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else exc
            yield Row(number, name, fault=f"row {number}, {name}: its {OF_A_PROMPT}: {why}")
            continue
        prompt = metadata.get("prompt")
        fault = f"its prompt {why}" if (why := prompt_fault(prompt)) else ""
        if file is None:
            fault = f"there is no {NO_SAMPLE}"
        yield Row(
            number,
            name,
            prompt if isinstance(prompt, str) else None,
            file or b"",
            {"tag": metadata["tag"]} if isinstance(metadata.get("tag"), str) else {},
            fault and f"row {number}, {name}: {fault}",
            folder=folder,
            any_path=any_path,
            options={GENEVAL: metadata} if GENEVAL in metrics else {},
        )


def metadata_of(file: Path, folder: Path, any_path: bool) -> Mapping[str, Any]:
    """Return a prompt's metadata.  Raises `OSError`, and `ValueError` if it is outside or no JSON object."""
    if not (any_path or is_below(file, folder)):
        raise ValueError(OUTSIDE_REASON)
    check_regular(file)
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as exc:
        raise ValueError("is not JSON") from exc
    if not isinstance(content, dict):
        raise ValueError("is no JSON object")
    return content
