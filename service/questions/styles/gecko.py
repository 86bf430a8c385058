"""Gecko's questions (Wiles et al. 2024, section 5): keywords first, then one question for each."""

import re
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from models.core.calls import GenerateCall
from models.families.question_llm import user_message
from service.questions.sets import Question
from service.questions.style import AnswerParser, Ask, Style, Texts, WrittenQuestions
from service.questions.styles.reading import (
    BOOLEAN,
    NUMBER,
    STRING,
    STRINGS,
    CompletionStyle,
    before,
    blocks,
    entries,
    instructions,
    number,
    schema,
    text,
)

CALLS = KEYWORDS, QUESTIONS = "keywords", "questions"
KEYWORDS_SCHEMA = schema("keywords", id=NUMBER, text=STRING, type=STRING, groundable=BOOLEAN)
QUESTIONS_SCHEMA = schema("questions", id=NUMBER, text=STRING, choices=STRINGS, answer=STRING)


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

    async def write(self, ask: Ask, prompt: str) -> WrittenQuestions:
        """
        Return the questions about *prompt*, each with its keyword's id, and the keywords without one.

        Raises:
            ValueError: a question has the number of no keyword.  Also the errors of *ask* and the parsers.
        """
        keywords = groundable(await ask(self.call(prompt)))
        if not keywords:
            return WrittenQuestions()
        questions = self.parse(await ask(self._questions(prompt, keywords)))
        asked = {question.id for question in questions}
        if unknown := asked - keywords.keys():
            raise ValueError(f"question {min(unknown)} is about no keyword")
        about = [(question, keywords[question.id]) for question in questions]
        return WrittenQuestions(
            tuple(replace(question, kind=word.kind, phrase=word.text) for question, word in about),
            tuple(word.text for id, word in keywords.items() if id not in asked),
        )

    def _questions(self, prompt: str, keywords: dict[int, Keyword]) -> GenerateCall:
        listed = ", ".join(f"{id} {word.text}" for id, word in keywords.items())
        user = user_message(f"{self.name} questions", prompt) + f"\nkeywords: {listed}"
        return GenerateCall(self.asking, user, schema=QUESTIONS_SCHEMA)

    def identity(self) -> list[Any]:
        """Return everything in the messages of both calls but the prompt."""
        return [
            *super().identity(),
            self.asking,
            user_message(f"{self.name} questions", ""),
            QUESTIONS_SCHEMA,
        ]


def groundable(answer: str) -> dict[int, Keyword]:
    """Parse the keywords that an image can show, by number, from an answer that follows `KEYWORDS_SCHEMA`."""
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
    """Parse an answer that follows `QUESTIONS_SCHEMA`."""
    return tuple(map(question, entries(answer, "questions")))


def question(entry: dict[str, Any]) -> Question:
    """Parse one question.  Raises `ValueError`, `KeyError` or `TypeError`."""
    choices = entry["choices"]
    if not isinstance(choices, list) or not choices:
        raise ValueError("a question has no choices")
    id, asked, expected = number(entry["id"]), text(entry["text"]), text(entry["answer"])
    return Question(id, asked, expected=expected, choices=tuple(map(text, choices)))


GECKO = Gecko("gecko", instructions("gecko"), KEYWORDS_SCHEMA, parse)


def made(name: str, texts: Texts) -> Gecko:
    """Return the style with other texts."""
    return replace(GECKO, name=name, instructions=texts[KEYWORDS], asking=texts[QUESTIONS])


parser = AnswerParser(GECKO.name, GECKO, made, CALLS)

LABEL = re.compile(r"[({](\d+)[)}]\s*\[([^\[\]]*)\]")  # "{1}[red, color, 1.0]"
LABELLED_HEADING = "The visual-groundable words and their scores are labelled below:\n"


class GeckoLines(CompletionStyle):
    """
    The prompts of the paper (listings 3 and 4): labels in the text, then blocks of questions.

    Each word of the prompt gets its type and a groundability from 0 to 1.
    """

    async def write(self, ask: Ask, prompt: str) -> WrittenQuestions:
        """Return the questions, each with its keyword, and the keywords without one.  Raises `ValueError`."""
        labelled, keywords = grounded(before(await ask(self.step(KEYWORDS, prompt)), "\nDescription:"))
        if not keywords:
            return WrittenQuestions()
        text = before(await ask(self.step(QUESTIONS, prompt, labelled)), "\nDescription:")
        questions, asked = [], set()
        for about, question in blocks(text):
            id = number_in(about)
            if id not in keywords:
                raise ValueError("a question is about no keyword")
            asked.add(id)
            questions.append(replace(question, kind=keywords[id].kind, phrase=keywords[id].text))
        return WrittenQuestions(
            tuple(questions), tuple(word.text for id, word in keywords.items() if id not in asked)
        )


def grounded(text: str) -> tuple[str, dict[int, Keyword]]:
    """
    Return the text with the labels of listing 4, and the words above groundability 0, numbered from 1.

    Raises:
        ValueError: a label is not a word, a type and a number from 0 to 1.
    """
    found: dict[int, Keyword] = {}

    def label(match: re.Match[str]) -> str:
        word, kind, score = label_of(match[2])
        if not score:
            return word
        found[len(found) + 1] = Keyword(word, kind)
        return f"{{{len(found)}}}[{word}, {kind}]"

    return LABEL.sub(label, text), found


def label_of(text: str) -> tuple[str, str, float]:
    """Parse "red, color, 1.0".  Raises `ValueError`."""
    word, kind, score = ([part.strip() for part in text.rsplit(",", 2)] + ["", ""])[:3]
    try:
        groundability = float(score)
    except ValueError:
        groundability = -1
    if not word or not 0 <= groundability <= 1:
        raise ValueError("a label is not a word, a type and a groundability from 0 to 1")
    return word, kind, groundability


def number_in(about: str) -> int:
    """Return 1 for "{1}" or "(1)", and 0 for anything else."""
    digits = about.strip("{}() ")
    return int(digits) if digits.isdecimal() else 0


def gecko_lines(name: str, texts: Texts) -> GeckoLines:
    """Return the style with these texts before the prompt."""
    first = "Description:\n{prompt}\n" + LABELLED_HEADING
    second = first + "{written}\nGenerated questions and answers are below:\n"
    endings = {KEYWORDS: first, QUESTIONS: second}
    return GeckoLines(name, "", {}, lambda answer: (), texts=texts, endings=endings)


lines_parser = AnswerParser("gecko_lines", GECKO, gecko_lines, CALLS)
