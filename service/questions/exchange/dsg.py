"""The CSV files of questions that j-min/DSG publishes (`dsg/data/*-anns.csv`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path

from service.core.text_files import table
from service.questions.exchange.contract import Entry, Format, ParsedSet, made
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


def entries(path: Path) -> Iterator[Entry]:
    """Yield one entry for the adjacent rows of each item."""
    for item, group in groupby(table(path, COLUMNS, fill=""), key=lambda row: row[1]["item_id"]):
        rows = list(islice(group, MAX_QUESTIONS + 1))
        yield Entry(rows[0][0], item, [row for _, row in rows])


def read(entry: Entry) -> ParsedSet:
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
    return ParsedSet(made(prompts.pop(), DSG.name, tuple(questions), provenance), tuple(repairs))


def question(row: Mapping[str, str], parents: tuple[int, ...]) -> Question:
    """Parse the question of a row.  Raises `ValueError`."""
    if not row["proposition_id"].isdecimal():
        raise ValueError(f"proposition_id {row['proposition_id']!r} is not a number")
    kind = row["tuple"].partition(" (")[0]
    text, phrase = row["question_natural_language"], row["keywords"]
    return Question(int(row["proposition_id"]), text, kind, parents, phrase=phrase)


def parents_of(dependencies: Sequence[str]) -> list[tuple[int, ...]] | None:
    """
    Parse the parents of each question of an item; None if a dependency contains a word, as in "5, right".

    The authors' code then drops all dependencies of the item.  0 means "no parent", also in a list.
    """
    try:
        numbers = [map(int, text.split(",")) for text in dependencies]
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


format = Format(DSG.name, entries, read)
