"""
Question sets, and the checks of their questions.

Two hashes, never mixed: the **id** names the content (prompt, style, questions), whoever wrote it; the
**lookup key** names a request for one (see `writer`).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

import orjson

ID = "sha256:"  # how the id of a set begins
MAX_QUESTIONS = 64
MAX_CHARACTERS = 1000  # characters of one question
MAX_CHOICES = 26  # a letter names each choice of a question
MAX_ID = 2**53 - 1  # above it, JSON readers lose digits of a number


@dataclass(frozen=True, slots=True)
class Question:
    """
    One question about a picture.

    Attributes:
        kind: its topic, in the words of its style.
        depends_on: ids of the questions that must have their expected answers for this one to apply.
        expected: the answer for an image of the prompt.
        choices: possible answers; empty for a yes-no question.
        phrase: the words of the prompt that it is about, if its style provides them.
    """

    id: int
    text: str
    kind: str = ""
    depends_on: tuple[int, ...] = ()
    expected: str = "yes"
    choices: tuple[str, ...] = ()
    phrase: str = ""

    def content(self) -> dict[str, Any]:
        """Return it for JSON, without unused fields, so that ids stay stable."""
        return {
            "id": self.id,
            "text": self.text,
            "kind": self.kind,
            "depends_on": self.depends_on,
            "expected": self.expected,
            **({"choices": self.choices} if self.choices else {}),
            **({"phrase": self.phrase} if self.phrase else {}),
        }


@dataclass(frozen=True)
class QuestionSet:
    """
    The questions for one prompt in one style.

    Attributes:
        provenance: who wrote them.
        unasked: words of the prompt without a question, though the style requires one.
    """

    prompt: str
    style: str
    questions: tuple[Question, ...]
    provenance: dict[str, str] = field(default_factory=dict, compare=False)
    unasked: tuple[str, ...] = ()

    @cached_property
    def id(self) -> str:
        """`sha256:` of the canonical prompt, style and questions."""
        content = self.content()
        del content["provenance"]
        return ID + hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def content(self) -> dict[str, Any]:
        """Return it for JSON, without unused fields, so that ids stay stable."""
        return {
            "prompt": self.prompt,
            "style": self.style,
            "questions": [question.content() for question in self.questions],
            "provenance": self.provenance,
            **({"unasked": [*self.unasked]} if self.unasked else {}),
        }


def to_json(questions: QuestionSet) -> bytes:
    """Serialize a set for a store."""
    return orjson.dumps(questions.content())


def from_json(content: bytes, id: str) -> QuestionSet | None:
    """Return the set written by `to_json`, or None if *content* is not the whole set with that *id*."""
    try:
        written = orjson.loads(content)
        questions = tuple(map(question_of, written.pop("questions")))
        unasked = tuple(written.pop("unasked", ()))
        found = QuestionSet(**written, questions=questions, unasked=unasked)
        return found if found.id == id and isinstance(found.provenance, dict) else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def question_of(content: dict[str, Any]) -> Question:
    """Return a question from its `content`.  Raises `KeyError` or `TypeError`."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
    }
    return Question(**fields)


def without_zero(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Return *questions* without the parent 0, which means none as in DSG's files, unless one has that id."""
    if any(question.id == 0 for question in questions):
        return tuple(questions)
    return tuple(replace(q, depends_on=tuple(filter(None, q.depends_on))) for q in questions)


def check(questions: Sequence[Question]) -> None:
    """
    Refuse an invalid set: repeated ids or questions, missing parents, cycles.

    Raises:
        ValueError: with the reason.
    """
    ids = {question.id for question in questions}
    if len(ids) < len(questions):
        raise ValueError("two questions have the same id")
    if len(questions) > MAX_QUESTIONS:
        raise ValueError(f"{len(questions)} questions; at most {MAX_QUESTIONS}")
    if not all(question.text.strip() and question.expected.strip() for question in questions):
        raise ValueError("a question or its expected answer is empty")
    if len({identity(question) for question in questions}) < len(questions):
        raise ValueError("a question is asked twice")
    for question in questions:
        for parent in question.depends_on:
            if parent not in ids:
                raise ValueError(f"question {question.id} depends on {parent}, which does not exist")
        if question.choices:
            check_choices(question)
    ordered(questions)


def identity(question: Question) -> tuple[str, str]:
    """
    Return what must be unique in a set: the text, and without choices also the expected answer.

    "What is there?" may expect "a dog" and, as another question, "a cat"; with choices only one is right.
    """
    sought = "" if question.choices else question.expected
    return question.text.strip().lower(), sought.strip().lower()


def check_choices(question: Question) -> None:
    """Raise `ValueError` if choices are too few or repeated, or the expected answer is not among them."""
    if question.expected not in question.choices:
        raise ValueError(f"the expected answer of question {question.id} is not among its choices")
    distinct = {choice.strip().lower() for choice in question.choices}
    if not 2 <= len(distinct) == len(question.choices) <= MAX_CHOICES or "" in distinct:
        raise ValueError(f"question {question.id} needs 2 to {MAX_CHOICES} different choices")


def ordered(questions: Sequence[Question]) -> list[Question]:
    """Return the questions, parents before children.  Raises `ValueError` for a cycle."""
    by_id = {question.id: question for question in questions}
    parents = {question.id: question.depends_on for question in questions}
    try:
        return [by_id[id] for id in TopologicalSorter(parents).static_order()]
    except CycleError as exc:
        raise ValueError("the dependencies form a cycle") from exc
