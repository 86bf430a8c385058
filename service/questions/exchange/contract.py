"""The contract of file formats: entries, each parsed into a question set or an error."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from service.core.fields import MAX_PROMPT
from service.core.text_files import MAX_LINE
from service.questions.sets import MAX_CHARACTERS, MAX_ID, Question, QuestionSet, check, without_zero
from service.questions.stores.contract import to_json

T = TypeVar("T", bound=BaseModel)


class Entry(NamedTuple):
    """
    One entry of a file, before parsing.

    Attributes:
        line: its number, from 1.
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
        read: returns the set of an entry.  Raises `ValueError` if it is invalid.
    """

    name: str
    entries: Callable[[Path], Iterator[Entry]]
    read: Callable[[Entry], ParsedSet]


def validated(kind: type[T], entry: Entry) -> T:
    """Parse the JSON of a line.  Raises `ValueError` that names the first invalid field."""
    if len(entry.content) > MAX_LINE:
        raise ValueError(f"the line is longer than {MAX_LINE} bytes")
    try:
        return kind.model_validate_json(entry.content)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise ValueError(f"{field}: {first['msg']}" if field else first["msg"]) from exc


def made(
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
