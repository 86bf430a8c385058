"""
The JSON Lines of GenEval 2 (arXiv 2512.16853): a prompt with `[question, answer]` pairs per line.

They are sets of `soft_tifa`. Questions have no choices, so the score is the probability of the answer
itself.
"""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from service.core.fields import Prompt
from service.core.text_files import lines
from service.questions.exchange.files import FileEntry, Format, ParsedSet, checked_set, validated
from service.questions.sets import Question

STYLE = "tifa"


class GenEval2Line(BaseModel):
    """One prompt; other fields are ignored."""

    model_config = ConfigDict(strict=True)

    prompt: Prompt
    vqa_list: list[tuple[str, str]]
    skills: list[str] = []


def entries(path: Path) -> Iterator[FileEntry]:
    """Yield one entry per line."""
    for number, line in lines(path):
        yield FileEntry(number, "", line)


def parse(entry: FileEntry) -> ParsedSet:
    """Parse the set of a line; the kind of a question is its skill, if there is one for each."""
    line = validated(GenEval2Line, entry)
    kinds = line.skills if len(line.skills) == len(line.vqa_list) else [""] * len(line.vqa_list)
    questions = tuple(
        Question(number, text, kind, expected=answer)
        for number, ((text, answer), kind) in enumerate(zip(line.vqa_list, kinds, strict=True), 1)
    )
    if not all(question.expected.strip() for question in questions):
        raise ValueError("an answer is empty")
    return ParsedSet(checked_set(line.prompt, STYLE, questions, {"source": "GenEval 2"}))


format = Format("geneval2", entries, parse)
