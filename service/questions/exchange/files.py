"""Import and export of question sets as files; each format is a module of this package."""

import gzip
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, NamedTuple, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from service.core.fields import MAX_PROMPT, first_fault
from service.core.text_files import MAX_LINE
from service.questions import exchange as package
from service.questions.sets import (
    MAX_CHARACTERS,
    MAX_ID,
    Question,
    QuestionSet,
    check,
    to_json,
    without_zero,
)
from service.questions.stores.contract import Store
from service.questions.writer import imported_key

T = TypeVar("T", bound=BaseModel)
SETS_PER_PROGRESS_LINE = 1000  # sets between two lines of progress


class FileEntry(NamedTuple):
    """
    One entry of a file, before parsing.

    Attributes:
        line: its number, from 1; 0 if the file is no file of lines.
        item: its name in the source; empty if it has none.
    """

    line: int
    item: str
    content: Any


class ParsedSet(NamedTuple):
    """A set, and the repairs of its entry."""

    questions: QuestionSet
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Format:
    """
    A file format of question sets.

    Attributes:
        entries: yields the entries of a file.  Raises `OSError` or `ValueError` if the file is truncated.
        parse: returns the set of an entry.  Raises `ValueError` if it is invalid.
    """

    name: str
    entries: Callable[[Path], Iterator[FileEntry]]
    parse: Callable[[FileEntry], ParsedSet]


def validated(kind: type[T], entry: FileEntry) -> T:
    """Parse the JSON of a line.  Raises `ValueError` that names the first invalid field."""
    if len(entry.content) > MAX_LINE:
        raise ValueError(f"the line is longer than {MAX_LINE} bytes")
    try:
        return kind.model_validate_json(entry.content)
    except ValidationError as exc:
        raise ValueError(first_fault(exc)) from exc


def checked_set(
    prompt: str,
    style: str,
    questions: tuple[Question, ...],
    provenance: dict[str, str],
    unasked: tuple[str, ...] = (),
) -> QuestionSet:
    """Return a valid set.  Raises `ValueError`."""
    if not prompt.strip() or len(prompt) > MAX_PROMPT:
        raise ValueError(f"the prompt is empty, or longer than {MAX_PROMPT} characters")
    if not questions:
        raise ValueError("it has no questions")
    for question in questions:
        if abs(question.id) > MAX_ID:
            raise ValueError(f"the id of a question is above {MAX_ID}")
        if len(question.text) > MAX_CHARACTERS:
            raise ValueError(f"question {question.id} is longer than {MAX_CHARACTERS} characters")
    questions = without_zero(questions)
    check(questions)
    found = QuestionSet(prompt, style, questions, provenance, unasked)
    try:
        to_json(found)
    except TypeError as exc:
        raise ValueError(f"it cannot be stored: {exc}") from exc
    return found


@cache
def formats() -> Mapping[str, Format]:
    """Return every format by name: the `format` of each module."""
    modules = [import_module(f"{package.__name__}.{info.name}") for info in iter_modules(package.__path__)]
    declared = [vars(module).get("format") for module in modules]
    return {found.name: found for found in declared if isinstance(found, Format)}


@dataclass(slots=True)
class Imported:
    """The numbers of stored sets, of repaired ones among them, and of refused entries."""

    imported: int = 0
    repaired: int = 0
    refused: int = 0


async def import_sets(
    store: Store, path: Path, format: Format, only: str, styles: Collection[str]
) -> Imported:
    """
    Store the sets of a file.

    Each becomes the imported set of its prompt in its style, unless there is one already.  Repairs, refused
    entries and a truncated file are reported on stderr.

    Args:
        only: import only items whose names begin with this and `_`; empty for all.
        styles: allowed styles.

    Raises:
        OSError: the file cannot be read.
        NotReady: the store failed.
    """
    done = Imported()
    try:
        for entry in format.entries(path):
            if not only or entry.item.startswith(f"{only}_"):
                await import_entry(store, entry, format, styles, done)
    except ValueError as exc:
        refuse(done, str(exc))
    return done


async def import_entry(
    store: Store, entry: FileEntry, format: Format, styles: Collection[str], done: Imported
) -> None:
    """Store the set of one entry, and count it."""
    place = ", ".join(filter(None, [f"line {entry.line}" if entry.line else "", entry.item]))
    try:
        questions, repairs = format.parse(entry)
        if questions.style not in styles:
            raise ValueError(f"no metric has the style {questions.style}; there are {', '.join(styles)}")
    except ValueError as exc:
        refuse(done, f"{place}: {exc}")
        return
    in_force = await store.put(imported_key(questions.prompt, questions.style), questions)
    done.imported += 1
    done.repaired += bool(repairs)
    for repair in repairs:
        say(f"{place}: repaired: {repair}")
    if in_force != questions:
        say(f"{place}: stored under its id {questions.id}; its prompt keeps the imported set {in_force.id}")
    if done.imported % SETS_PER_PROGRESS_LINE == 0:
        say(f"{done.imported} sets imported")


async def export_sets(store: Store, path: Path) -> int:
    """
    Write all sets to a file, gzipped if its name ends in `.gz`, and return their number.

    The file appears only when it is complete.

    Raises:
        OSError: it cannot be written.
        NotReady: the store failed.
    """
    written = 0
    part = path.with_name(path.name + ".part")
    with gzip.open(part, "wb") if path.suffix == ".gz" else part.open("wb") as file:
        async for id, questions in store.sets():
            if not isinstance(questions, QuestionSet):
                say(f"left out: what is stored as {id} is not a question set")
                continue
            file.write(line_of(questions))
            written += 1
            if written % SETS_PER_PROGRESS_LINE == 0:
                say(f"{written} sets exported")
    os.replace(part, path)
    return written


def line_of(questions: QuestionSet) -> bytes:
    """Return a set as one line of the format `jsonl`, with a line feed."""
    return orjson.dumps({"id": questions.id, **questions.content()}, option=orjson.OPT_APPEND_NEWLINE)


def refuse(done: Imported, reason: str) -> None:
    """Count a refused entry, and print the reason."""
    done.refused += 1
    say(f"refused: {reason}")


def say(line: str) -> None:
    """Print a line to stderr."""
    print(line, file=sys.stderr)
