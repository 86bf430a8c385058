"""Import of question sets from a file into a store, and export."""

import gzip
import os
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from service.questions.exchange.contract import Entry, Format
from service.questions.exchange.jsonl import line_of
from service.questions.sets import QuestionSet
from service.questions.stores.contract import Store
from service.questions.writer import imported_key

PROGRESS = 1000  # sets between two lines of progress


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
    store: Store, entry: Entry, format: Format, styles: Collection[str], done: Imported
) -> None:
    """Store the set of one entry, and count it."""
    place = f"line {entry.line}" + (f", {entry.item}" if entry.item else "")
    try:
        questions, repairs = format.read(entry)
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
    if done.imported % PROGRESS == 0:
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
            if written % PROGRESS == 0:
                say(f"{written} sets exported")
    os.replace(part, path)
    return written


def refuse(done: Imported, reason: str) -> None:
    """Count a refused entry, and print the reason."""
    done.refused += 1
    say(f"refused: {reason}")


def say(line: str) -> None:
    """Print a line to stderr."""
    print(line, file=sys.stderr)
