"""
The JSON files of questions that Yushi-Hu/tifa publishes (`tifa_v1.0_question_answers.json`).

One list holds the questions of all captions, and the `id` of a question is that of its caption. They are
sets of `tifa` and `soft_tifa`. `--only coco` takes the ids `coco_…`. A repeated question or choice is
dropped, with a message.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from service.core.fields import Prompt, first_fault
from service.core.text_files import opened
from service.questions.exchange.files import FileEntry, Format, ParsedSet, checked_set
from service.questions.sets import MAX_QUESTIONS, Question

STYLE = "tifa"
SOURCE = "Yushi-Hu/tifa"
REPEATED_QUESTION = "a question is asked twice: the second is dropped"
REPEATED_CHOICE = "a question has a choice twice: the second is dropped"


class TifaLine(BaseModel):
    """One question; other fields are ignored."""

    model_config = ConfigDict(strict=True)

    id: str | int
    caption: Prompt
    question: str
    choices: list[str]
    answer: str
    element_type: str = ""
    element: str = ""


LINES = TypeAdapter(list[TifaLine])


def entries(path: Path) -> Iterator[FileEntry]:
    """Yield one entry for all questions of each caption, in the order of the captions' first questions."""
    with opened(path) as file:
        try:
            content = orjson.loads(file.read())
        except orjson.JSONDecodeError as exc:
            raise ValueError(f"{path} is not JSON: {exc}") from exc
    if not isinstance(content, list):
        raise ValueError(f"{path} is no list of questions")
    found: dict[str, list[Any]] = {}
    for number, each in enumerate(content, 1):
        id = each.get("id") if isinstance(each, dict) else None
        if not isinstance(id, str | int):
            yield FileEntry(0, f"question {number} of the file", [each])
            continue
        questions = found.setdefault(str(id), [])
        if len(questions) <= MAX_QUESTIONS:  # one more is refused
            questions.append(each)
    for item, questions in found.items():
        yield FileEntry(0, item, questions)


def parse(entry: FileEntry) -> ParsedSet:
    """Parse the questions of a caption; a repeated question or choice is dropped."""
    try:
        lines = LINES.validate_python(entry.content)
    except ValidationError as exc:
        raise ValueError(first_fault(exc)) from exc
    if len({line.caption for line in lines}) > 1:
        raise ValueError("its questions have different captions")
    questions, repairs, asked = list[Question](), dict[str, None](), set[str]()
    for number, line in enumerate(lines, 1):
        text, choices = line.question.strip().lower(), different(line.choices, line.answer)
        if text in asked:
            repairs[REPEATED_QUESTION] = None
            continue
        asked.add(text)
        if len(choices) < len(line.choices):
            repairs[REPEATED_CHOICE] = None
        questions.append(
            Question(
                number,
                line.question,
                line.element_type,
                expected=line.answer,
                choices=choices,
                phrase=line.element,
            )
        )
    provenance = {"source": SOURCE, "item": entry.item}
    if repairs:
        provenance["repaired"] = "; ".join(repairs)
    return ParsedSet(checked_set(lines[0].caption, STYLE, tuple(questions), provenance), tuple(repairs))


def different(choices: list[str], answer: str) -> tuple[str, ...]:
    """Return *choices* without those that differ in case or spaces alone; of these the *answer* is kept."""
    kept = {choice.strip().lower(): choice for choice in reversed(choices)}
    if answer in choices:
        kept[answer.strip().lower()] = answer
    return tuple(kept[choice] for choice in dict.fromkeys(each.strip().lower() for each in choices))


format = Format(STYLE, entries, parse)
