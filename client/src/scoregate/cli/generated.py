"""GenEval's folder of generated pictures: `00000/metadata.jsonl` and `00000/samples/0000.png`."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from scoregate.cli.exits import UsageFault
from scoregate.cli.rows import OUTSIDE, Row, is_below, prompt_fault
from scoregate.images import check_regular

METADATA, SAMPLES, METRIC = "metadata.jsonl", "samples", "geneval"
NO_SAMPLE = f"sample, such as {SAMPLES}/0000.png"
PICTURE = re.compile(r"\d+\.(png|jpe?g|webp)", re.IGNORECASE)


def is_generated(folder: Path) -> bool:
    """Return True if *folder* has a numbered folder with a prompt's metadata."""
    return any((each / METADATA).is_file() for each in numbered(folder))


def numbered(folder: Path) -> Iterator[Path]:
    return (each for each in sorted(folder.iterdir()) if each.name.isdigit() and each.is_dir())


def samples(folder: Path) -> Iterator[tuple[Path, Path | None]]:
    """Yield each prompt's folder with each of its pictures, which have numbers as names; None without any."""
    for each in numbered(folder):
        files = (each / SAMPLES).iterdir() if (each / SAMPLES).is_dir() else ()
        found: list[Path | None] = [*sorted(file for file in files if PICTURE.fullmatch(file.name))]
        yield from ((each, file) for file in found or [None])


def generated(folder: Path, metrics: Sequence[str], any_path: bool) -> Iterator[Row]:
    """
    Yield the pictures; the metadata is an option of `geneval`, and its task the column `tag`.

    A prompt without pictures is a row with a fault.

    Raises:
        UsageFault: no prompt has a picture.
    """
    if not any(file for _, file in samples(folder)):
        raise UsageFault(f"{folder}: no prompt has a {NO_SAMPLE}")
    for number, (of_prompt, file) in enumerate(samples(folder), 1):
        name = (file or of_prompt / SAMPLES).relative_to(folder).as_posix()
        try:
            metadata = metadata_of(of_prompt / METADATA, folder, any_path)
        except (OSError, ValueError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else exc
            yield Row(number, name, fault=f"row {number}, {name}: its {METADATA}: {why}")
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
