"""GenEval's folder of generated pictures: `00000/metadata.jsonl` and `00000/samples/0000.png`."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from scoregate.cli.rows import OUTSIDE, Row, is_below, prompt_fault
from scoregate.images import check_regular

METADATA, SAMPLES, METRIC = "metadata.jsonl", "samples", "geneval"
PICTURE = re.compile(r"\d+\.(png|jpe?g|webp)", re.IGNORECASE)


def is_generated(folder: Path) -> bool:
    """Return True if *folder* has numbered folders with metadata and samples."""
    return any((each / METADATA).is_file() and (each / SAMPLES).is_dir() for each in numbered(folder))


def numbered(folder: Path) -> Iterator[Path]:
    return (each for each in sorted(folder.iterdir()) if each.name.isdigit() and each.is_dir())


def samples(folder: Path) -> Iterator[Path]:
    """Yield the pictures of all prompts, which have numbers as names."""
    for each in numbered(folder):
        if (each / SAMPLES).is_dir():
            yield from sorted(file for file in (each / SAMPLES).iterdir() if PICTURE.fullmatch(file.name))


def generated(folder: Path, metrics: Sequence[str], any_path: bool) -> Iterator[Row]:
    """Yield the pictures; the metadata is an option of `geneval`, and its task the column `tag`."""
    for number, file in enumerate(samples(folder), 1):
        name = file.relative_to(folder).as_posix()
        try:
            metadata = metadata_of(file.parent.parent / METADATA, folder, any_path)
        except (OSError, ValueError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else exc
            yield Row(number, name, fault=f"row {number}, {name}: its {METADATA}: {why}")
            continue
        prompt = metadata.get("prompt")
        fault = prompt_fault(prompt)
        yield Row(
            number,
            name,
            prompt if isinstance(prompt, str) else None,
            file,
            {"tag": metadata["tag"]} if isinstance(metadata.get("tag"), str) else {},
            fault and f"row {number}, {name}: its prompt {fault}",
            folder=folder,
            any_path=any_path,
            options={METRIC: metadata} if METRIC in metrics else {},
        )


def metadata_of(file: Path, folder: Path, any_path: bool) -> Mapping[str, Any]:
    """Return a prompt's metadata.  Raises `OSError`, and `ValueError` if it is outside or no JSON object."""
    if not (any_path or is_below(file, folder)):
        raise ValueError(OUTSIDE)
    check_regular(file)
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as exc:
        raise ValueError("is not JSON") from exc
    if not isinstance(content, dict):
        raise ValueError("is no JSON object")
    return content
