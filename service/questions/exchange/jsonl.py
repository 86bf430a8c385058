"""
Scoregate's format: JSON Lines, one set per line, as from `GET /questions/{id}`; the default.

A wrong `id` is rejected, a missing one is computed.
"""

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from service.core.fields import Prompt, Strict, Whole
from service.core.text_files import lines
from service.questions.exchange.files import FileEntry, Format, ParsedSet, checked_set, validated
from service.questions.sets import Question


class QuestionLine(Strict):
    """A question as written by `Question.content`."""

    id: Whole
    text: str
    kind: str = ""
    depends_on: list[Whole] = Field(default_factory=list)
    expected: str = "yes"
    choices: list[str] = Field(default_factory=list)
    phrase: str = ""

    def question(self) -> Question:
        """Convert to the type of question sets."""
        parents, choices = tuple(self.depends_on), tuple(self.choices)
        return Question(self.id, self.text, self.kind, parents, self.expected, choices, self.phrase)


class SetLine(Strict):
    """A set; the id is optional, for sets written by hand."""

    prompt: Prompt
    style: str
    id: str = ""
    questions: list[QuestionLine]
    provenance: dict[str, str] = Field(default_factory=dict)
    unasked: list[str] = Field(default_factory=list)


def entries(path: Path) -> Iterator[FileEntry]:
    """Yield one entry per line."""
    for number, line in lines(path):
        yield FileEntry(number, "", line)


def parse(entry: FileEntry) -> ParsedSet:
    """Parse the set of a line.  Raises `ValueError` for a wrong id."""
    line = validated(SetLine, entry)
    questions = tuple(question.question() for question in line.questions)
    found = checked_set(line.prompt, line.style, questions, line.provenance, tuple(line.unasked))
    if line.id and line.id != found.id:
        raise ValueError(f"the id is {line.id}, but that of its content is {found.id}")
    return ParsedSet(found)


format = Format("jsonl", entries, parse)
