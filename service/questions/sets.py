"""
What a question set is, and which text is one.

Two hashes, never mixed: the **id** names the content (prompt, style, questions), whoever wrote it; the
**lookup key** names a request for one (see `writer`).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from service.errors import NoQuestions, QuestionLLMFailed

MOST_QUESTIONS = 64
MOST_CHARACTERS = 1000  # of one question


@dataclass(frozen=True, slots=True)
class Question:
    """One yes/no question; *depends_on* holds ids of questions whose "no" makes this one moot."""

    id: int
    text: str
    kind: str = ""
    depends_on: tuple[int, ...] = ()
    expected: str = "yes"


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions for one prompt in one style; provenance says who wrote them."""

    prompt: str
    style: str
    questions: tuple[Question, ...]
    provenance: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def id(self) -> str:
        """`sha256:` of the canonical prompt, style and questions."""
        content = {
            "prompt": self.prompt,
            "style": self.style,
            "questions": [asdict(question) for question in self.questions],
        }
        return "sha256:" + hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def check(questions: Sequence[Question]) -> None:
    """
    Refuse what is no sound set: ids that repeat, parents that don't exist, cycles, twins.

    Raises:
        ValueError: a sentence saying what is wrong.
    """
    ids = [question.id for question in questions]
    if len(set(ids)) < len(ids):
        raise ValueError("two questions have the same id")
    if len(questions) > MOST_QUESTIONS:
        raise ValueError(f"{len(questions)} questions; at most {MOST_QUESTIONS}")
    texts = [question.text.strip().lower() for question in questions]
    if not all(texts) or len(set(texts)) < len(texts):
        raise ValueError("a question is empty or asked twice")
    for question in questions:
        for parent in question.depends_on:
            if parent not in ids:
                raise ValueError(f"question {question.id} depends on {parent}, which is none")
    ordered(questions)


def ordered(questions: Sequence[Question]) -> list[Question]:
    """The questions with every parent before its children.  Raises `ValueError` for a cycle."""
    done: dict[int, Question] = {}
    left = list(questions)
    while left:
        free = [q for q in left if all(parent in done for parent in q.depends_on)]
        if not free:
            raise ValueError("the dependencies form a cycle")
        done |= {question.id: question for question in free}
        left = [question for question in left if question.id not in done]
    return list(done.values())


def parse(text: str, prompt: str, style: str, provenance: dict[str, str]) -> QuestionSet:
    """
    The set that a question LLM wrote as JSON (`templates.SCHEMA`).

    Raises:
        QuestionLLMFailed: the text is not such JSON, or no sound set.
        NoQuestions: the LLM found nothing to ask.
    """
    try:
        written = orjson.loads(text)["questions"]
        questions = tuple(read(entry) for entry in written)
        check(questions)
    except (ValueError, KeyError, TypeError) as exc:
        reason = str(exc) if type(exc) is ValueError else "not the JSON that was asked for"
        raise QuestionLLMFailed(f"the question LLM's answer is no question set: {reason}") from exc
    if not questions:
        raise NoQuestions("the question LLM found nothing in this prompt to ask about")
    return QuestionSet(prompt, style, questions, provenance)


def read(entry: dict[str, Any]) -> Question:
    number, text, kind = entry["id"], entry["text"], entry["kind"]
    parents = tuple(entry["depends_on"])
    if type(number) is not int or any(type(parent) is not int for parent in parents):
        raise ValueError("an id is not an integer")
    if not isinstance(text, str) or not isinstance(kind, str) or len(text) > MOST_CHARACTERS:
        raise ValueError("a text is not a string of ordinary length")
    return Question(number, text, kind, parents)
