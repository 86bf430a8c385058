"""
Question sets: what one is, and which questions make one.

Two hashes, never mixed: the **id** names the content (prompt, style, questions), whoever wrote it; the
**lookup key** names a request for one (see `writer`).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

import orjson

MAX_QUESTIONS = 64
MAX_CHARACTERS = 1000  # of one question
MAX_CHOICES = 26  # of one question: as many as there are letters
MAX_ID = 2**53 - 1  # of a question that a caller numbers: above it, JSON readers lose digits


@dataclass(frozen=True, slots=True)
class Question:
    """
    One question about a picture.

    Attributes:
        kind: what it asks about, in the words of its style.
        depends_on: ids of the questions that must be answered as expected for this one to make sense.
        expected: the answer that a picture of the prompt gets.
        choices: the answers to choose from; empty for a question answered by yes or no.
        phrase: the words of the prompt that it is about, where its style says so.
    """

    id: int
    text: str
    kind: str = ""
    depends_on: tuple[int, ...] = ()
    expected: str = "yes"
    choices: tuple[str, ...] = ()
    phrase: str = ""

    def content(self) -> dict[str, Any]:
        """All of it as JSON has it; without fields that it does not use, so that ids stay as they were."""
        return {
            "id": self.id,
            "text": self.text,
            "kind": self.kind,
            "depends_on": self.depends_on,
            "expected": self.expected,
            **({"choices": self.choices} if self.choices else {}),
            **({"phrase": self.phrase} if self.phrase else {}),
        }


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """
    The questions for one prompt in one style.

    Attributes:
        provenance: who wrote them.
        unasked: words of the prompt that should have had a question and got none.
    """

    prompt: str
    style: str
    questions: tuple[Question, ...]
    provenance: dict[str, str] = field(default_factory=dict, compare=False)
    unasked: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """`sha256:` of the canonical prompt, style and questions."""
        content = {
            "prompt": self.prompt,
            "style": self.style,
            "questions": [question.content() for question in self.questions],
            **self.missing(),
        }
        return "sha256:" + hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def missing(self) -> dict[str, Any]:
        """What is unasked as JSON has it; empty where nothing is, so that ids stay as they were."""
        return {"unasked": [*self.unasked]} if self.unasked else {}


def check(questions: Sequence[Question]) -> None:
    """
    Refuse a set that cannot be asked: repeated ids or questions, parents that don't exist, cycles.

    Raises:
        ValueError: a sentence saying what is wrong.
    """
    ids = {question.id for question in questions}
    if len(ids) < len(questions):
        raise ValueError("two questions have the same id")
    if len(questions) > MAX_QUESTIONS:
        raise ValueError(f"{len(questions)} questions; at most {MAX_QUESTIONS}")
    if not all(question.text.strip() and question.expected.strip() for question in questions):
        raise ValueError("a question or its expected answer is empty")
    if len({asks(question) for question in questions}) < len(questions):
        raise ValueError("a question is asked twice")
    for question in questions:
        for parent in question.depends_on:
            if parent not in ids:
                raise ValueError(f"question {question.id} depends on {parent}, which does not exist")
        check_choices(question)
    ordered(questions)


def asks(question: Question) -> tuple[str, str]:
    """
    What a question asks, so that no two of a set ask the same.

    "What is there?" may be asked for "a dog" and for "a cat"; with choices it has but one right answer.
    """
    sought = "" if question.choices else question.expected
    return question.text.strip().lower(), sought.strip().lower()


def check_choices(question: Question) -> None:
    """Raises `ValueError` where the choices of *question* are no choice, or the expected answer is none."""
    if not question.choices:
        return
    if question.expected not in question.choices:
        raise ValueError(f"the expected answer of question {question.id} is not among its choices")
    told_apart = {choice.strip().lower() for choice in question.choices}
    if not 2 <= len(told_apart) == len(question.choices) <= MAX_CHOICES or "" in told_apart:
        raise ValueError(f"question {question.id} needs 2 to {MAX_CHOICES} different choices")


def ordered(questions: Sequence[Question]) -> list[Question]:
    """The questions with every parent before its children.  Raises `ValueError` for a cycle."""
    by_id = {question.id: question for question in questions}
    parents = {question.id: question.depends_on for question in questions}
    try:
        return [by_id[id] for id in TopologicalSorter(parents).static_order()]
    except CycleError as exc:
        raise ValueError("the dependencies form a cycle") from exc
