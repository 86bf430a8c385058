"""Gecko's questions (Wiles et al. 2024, section 5): keywords first, then one question for each."""

from dataclasses import replace
from typing import Any, NamedTuple

from models.core.calls import GenerateCall
from models.families.question_llm.prompt import user_message
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
ASKING = instructions("gecko_questions")


class Keyword(NamedTuple):
    """A word of the prompt, or several that belong together, and what kind of word it is."""

    text: str
    kind: str


class Gecko(Style):
    """
    One question for each keyword that an image can show: that the prompt is covered can be seen.

    The paper asks for the questions one after another; here one call writes them all.  A keyword that it
    left out is reported with the set.
    """

    async def written(self, ask: Ask, prompt: str) -> Written:
        """
        The questions about *prompt*, each with its keyword's id, and the keywords without one.

        Raises:
            ValueError: a question has the number of no keyword, or what *ask* and the readers raise.
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
        return GenerateCall(ASKING, user, schema=QUESTIONS)

    def identity(self) -> list[Any]:
        """Everything that the LLM is told beside the prompt, in both calls."""
        return [*super().identity(), ASKING, user_message(f"{self.name} questions", ""), QUESTIONS]


def groundable(answer: str) -> dict[int, Keyword]:
    """The keywords that an image can show, by number, in an answer that follows `KEYWORDS`."""
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
    """The questions in an answer that follows `QUESTIONS`."""
    return tuple(map(question, entries(answer, "questions")))


def question(entry: dict[str, Any]) -> Question:
    """One of them.  Raises `ValueError`, `KeyError` or `TypeError`."""
    choices = entry["choices"]
    if not isinstance(choices, list) or not choices:
        raise ValueError("a question has no choices")
    id, asked, expected = number(entry["id"]), text(entry["text"]), text(entry["answer"])
    return Question(id, asked, expected=expected, choices=tuple(map(text, choices)))


GECKO = Gecko("gecko", instructions("gecko"), KEYWORDS, parse)
