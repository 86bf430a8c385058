"""Gecko's questions (Wiles et al. 2024, section 5): keywords first, then one question for each."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from models.core.calls import GenerateCall
from models.families.question_llm import user_message
from service.questions.parser import Parser, Texts
from service.questions.sets import Question
from service.questions.style import Ask, Style, Written
from service.questions.styles.reading import (
    BOOLEAN,
    NUMBER,
    STRING,
    STRINGS,
    entries,
    instructions,
    number,
    schema,
    text,
)

KEYWORDS = schema("keywords", id=NUMBER, text=STRING, type=STRING, groundable=BOOLEAN)
QUESTIONS = schema("questions", id=NUMBER, text=STRING, choices=STRINGS, answer=STRING)


class Keyword(NamedTuple):
    """A word or phrase of the prompt, and its kind."""

    text: str
    kind: str


@dataclass(frozen=True)
class Gecko(Style):
    """
    One question for each keyword that an image can show, so that coverage of the prompt can be checked.

    In the paper each question is a call; here one call writes them all.  Keywords without a question are
    reported with the set.

    Attributes:
        asking: the system message of the second call.
    """

    asking: str = instructions("gecko_questions")

    async def written(self, ask: Ask, prompt: str) -> Written:
        """
        Return the questions about *prompt*, each with its keyword's id, and the keywords without one.

        Raises:
            ValueError: a question has the number of no keyword.  Also the errors of *ask* and the parsers.
        """
        keywords = groundable(await ask(self.call(prompt)))
        if not keywords:
            return Written(())
        questions = self.parse(await ask(self._questions(prompt, keywords)))
        asked = {question.id for question in questions}
        if unknown := asked - keywords.keys():
            raise ValueError(f"question {min(unknown)} is about no keyword")
        about = [(question, keywords[question.id]) for question in questions]
        return Written(
            tuple(replace(question, kind=word.kind, phrase=word.text) for question, word in about),
            tuple(word.text for id, word in keywords.items() if id not in asked),
        )

    def _questions(self, prompt: str, keywords: dict[int, Keyword]) -> GenerateCall:
        listed = ", ".join(f"{id} {word.text}" for id, word in keywords.items())
        user = user_message(f"{self.name} questions", prompt) + f"\nkeywords: {listed}"
        return GenerateCall(self.asking, user, schema=QUESTIONS)

    def identity(self) -> list[Any]:
        """Return everything in the messages of both calls but the prompt."""
        return [*super().identity(), self.asking, user_message(f"{self.name} questions", ""), QUESTIONS]


def groundable(answer: str) -> dict[int, Keyword]:
    """Parse the keywords that an image can show, by number, from an answer that follows `KEYWORDS`."""
    found: dict[int, Keyword] = {}
    for entry in entries(answer, "keywords"):
        id, seen = number(entry["id"]), entry["groundable"]
        if id in found:
            raise ValueError("two keywords have the same id")
        if not isinstance(seen, bool):
            raise ValueError("groundable is neither true nor false")
        if seen:
            found[id] = Keyword(text(entry["text"]), text(entry["type"]))
    return found


def parse(answer: str) -> tuple[Question, ...]:
    """Parse an answer that follows `QUESTIONS`."""
    return tuple(map(question, entries(answer, "questions")))


def question(entry: dict[str, Any]) -> Question:
    """Parse one question.  Raises `ValueError`, `KeyError` or `TypeError`."""
    choices = entry["choices"]
    if not isinstance(choices, list) or not choices:
        raise ValueError("a question has no choices")
    id, asked, expected = number(entry["id"]), text(entry["text"]), text(entry["answer"])
    return Question(id, asked, expected=expected, choices=tuple(map(text, choices)))


GECKO = Gecko("gecko", instructions("gecko"), KEYWORDS, parse)

CALLS = ("keywords", "questions")


def made(name: str, texts: Texts) -> Gecko:
    """Return the style with other texts."""
    return replace(GECKO, name=name, instructions=texts[CALLS[0]], asking=texts[CALLS[1]])


parser = Parser(GECKO.name, GECKO, made, CALLS)
