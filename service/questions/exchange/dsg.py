"""
The CSV files of questions that j-min/DSG publishes (`dsg/data/*-anns.csv`).

A set is all rows of one item. `--only NAME` takes items named `NAME_…`. Known faults are repaired, with a
message.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from service.core.text_files import table
from service.questions.exchange.files import FileEntry, Format, ParsedSet, checked_set
from service.questions.sets import MAX_QUESTIONS, Question
from service.questions.styles.dsg import DSG

COLUMNS = (
    "item_id",
    "text",
    "keywords",
    "proposition_id",
    "dependency",
    "tuple",
    "question_natural_language",
)
NUMBER = re.compile(r"(-?[0-9]+)(?:\.0)?")


def entries(path: Path) -> Iterator[FileEntry]:
    """
    Yield one entry for all rows of each item, in the order of the items' first rows.

    The rows of an item may be scattered.  Raises after the entries of the rows before a fault.
    """
    found: dict[str, FileEntry] = {}
    fault = None
    try:
        for line, row in table(path, COLUMNS, fill=""):
            entry = found.setdefault(row["item_id"], FileEntry(line, row["item_id"], []))
            if len(entry.content) <= MAX_QUESTIONS:  # one more is refused
                entry.content.append({column: row[column] for column in COLUMNS})
    except ValueError as exc:
        fault = exc
    yield from found.values()
    if fault:
        raise fault


def parse(entry: FileEntry) -> ParsedSet:
    """Parse the questions of an item, with repairs of everything that is invalid in a set."""
    rows: list[dict[str, str]] = entry.content
    repairs = []
    parents = parents_of([row["dependency"] for row in rows])
    if parents is None:
        parents = [()] * len(rows)
        repairs.append("a dependency is not a number, so all dependencies are dropped")
    questions = [question(row, ids) for row, ids in zip(rows, parents, strict=True)]
    for repair in (numbered_once, not_empty, asked_once, with_known_parents, without_cycles):
        repaired, what = repair(questions)
        if repaired != questions:
            questions = repaired
            repairs.append(what)
    prompts = {row["text"] for row in rows}
    if len(prompts) > 1:
        raise ValueError("its rows have different prompts")
    provenance = {"source": "j-min/DSG", "item": entry.item}
    if repairs:
        provenance["repaired"] = "; ".join(repairs)
    return ParsedSet(checked_set(prompts.pop(), DSG.name, tuple(questions), provenance), tuple(repairs))


def question(row: Mapping[str, str], parents: tuple[int, ...]) -> Question:
    """Parse the question of a row.  Raises `ValueError`."""
    try:
        id = number(row["proposition_id"])
    except ValueError:
        raise ValueError(f"proposition_id {row['proposition_id']!r} is not a number") from None
    kind = row["tuple"].partition(" (")[0]
    text, phrase = row["question_natural_language"], row["keywords"]
    return Question(id, text, kind, parents, phrase=phrase)


def number(text: str) -> int:
    """Parse "7", or "7.0" as pandas writes a column with empty cells.  Raises `ValueError`."""
    found = NUMBER.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a number")
    return int(found[1])


def parents_of(dependencies: Sequence[str]) -> list[tuple[int, ...]] | None:
    """
    Parse the parents of each question of an item; None if a dependency contains a word, as in "5, right".

    The authors' code then drops all dependencies of the item.  An empty text means "no parent", and so does
    0, also in a list.
    """
    try:
        numbers = [map(number, text.split(",") if text.strip() else ()) for text in dependencies]
        return [tuple(dict.fromkeys(id for id in ids if id)) for ids in numbers]
    except ValueError:
        return None


Repair = tuple[list[Question], str]


def numbered_once(questions: Sequence[Question]) -> Repair:
    """Renumber questions with a repeated number; the first keeps the number and its children."""
    ids = {q.id for q in questions}
    fresh = iter(range(max(ids) + 1, max(ids) + 1 + len(questions)))
    known = set[int]()
    kept = []
    for q in questions:
        kept.append(replace(q, id=next(fresh)) if q.id in known else q)
        known.add(q.id)
    return kept, "a number stands there twice: the second question gets a new one"


def not_empty(questions: Sequence[Question]) -> Repair:
    """Drop empty questions."""
    return [q for q in questions if q.text.strip()], "a question is empty: it is dropped"


def asked_once(questions: Sequence[Question]) -> Repair:
    """Drop repeated questions; the first becomes the parent of the others' children."""
    first: dict[str, int] = {}
    same = {q.id: first.setdefault(q.text.strip().lower(), q.id) for q in questions}
    kept = [
        replaced(q, dict.fromkeys(same.get(id, id) for id in q.depends_on))
        for q in questions
        if same[q.id] == q.id
    ]
    return kept, "a question is asked twice: the second is dropped"


def with_known_parents(questions: Sequence[Question]) -> Repair:
    """Drop dependencies on missing parents."""
    ids = {q.id for q in questions}
    kept = [replaced(q, (id for id in q.depends_on if id in ids)) for q in questions]
    return kept, "a parent is missing: the dependency is dropped"


def without_cycles(questions: Sequence[Question]) -> Repair:
    """Drop dependencies that close a cycle; those on earlier questions are kept first."""
    edges = [(q.id, parent) for q in questions for parent in q.depends_on]
    kept: dict[int, list[int]] = {q.id: [] for q in questions}
    for child, parent in sorted(edges, key=lambda edge: edge[0] <= edge[1]):
        if child not in ancestors(parent, kept):
            kept[child].append(parent)
    whole = [replaced(q, (id for id in q.depends_on if id in kept[q.id])) for q in questions]
    return whole, "the dependencies form a cycle: what closes it is dropped"


def ancestors(id: int, parents: Mapping[int, Sequence[int]]) -> set[int]:
    """Return a question with all its ancestors."""
    found: set[int] = set()
    pending = [id]
    while pending:
        if (one := pending.pop()) not in found:
            found.add(one)
            pending.extend(parents[one])
    return found


def replaced(question: Question, parents: Iterable[int]) -> Question:
    """Return the question with other parents."""
    return replace(question, depends_on=tuple(parents))


format = Format(DSG.name, entries, parse)
