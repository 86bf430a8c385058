"""TIFA's questions (Hu et al. 2023): each with choices, and the answer by the prompt."""

import re
from dataclasses import replace
from typing import Any

import orjson

from models.core.calls import GenerateCall
from models.families.question_llm import user_message
from service.questions.sets import Question, check
from service.questions.style import AnswerParser, Ask, Style, Texts, WrittenQuestions
from service.questions.styles.reading import (
    STRING,
    STRINGS,
    CompletionStyle,
    before,
    blocks,
    entries,
    instructions,
    schema,
    text,
)

TYPES = (
    "object",
    "human",
    "animal",
    "food",
    "activity",
    "attribute",
    "counting",
    "color",
    "material",
    "spatial",
    "location",
    "shape",
    "other",
)
SCHEMA = schema(
    "questions",
    entity=STRING,
    type={"type": "string", "enum": [*TYPES]},
    text=STRING,
    choices=STRINGS,
    answer=STRING,
)


def parse(answer: str) -> tuple[Question, ...]:
    """Parse an answer that follows `SCHEMA`."""
    return tuple(question(id, entry) for id, entry in enumerate(entries(answer, "questions"), 1))


def question(id: int, entry: dict[str, Any]) -> Question:
    """Parse one question.  Raises `ValueError`, `KeyError` or `TypeError`."""
    kind, choices = entry["type"], entry["choices"]
    if kind not in TYPES:
        raise ValueError("a question's type is not one of the thirteen")
    if not isinstance(choices, list) or not choices:
        raise ValueError("a question has no choices")
    return Question(
        id,
        text(entry["text"]),
        kind,
        expected=text(entry["answer"]),
        choices=tuple(map(text, choices)),
        phrase=text(entry["entity"]),
    )


class Verified(Style):
    """
    A filter of questions that the prompt alone does not answer as expected.

    In the paper a model with the prompt and without the image, here the question LLM itself, answers every
    question.  One with another or unknown answer is dropped.
    """

    async def write(self, ask: Ask, prompt: str) -> WrittenQuestions:
        """Return the confirmed questions.  Raises the errors of *ask* and the parsers."""
        questions, _ = await super().write(ask, prompt)
        check(questions)
        if not questions:
            return WrittenQuestions()
        given = answers(await ask(self._verification(prompt, listed(questions))))
        if len(given) != len(questions):
            raise ValueError(f"{len(given)} answers to {len(questions)} questions")
        pairs = zip(questions, given, strict=True)
        return WrittenQuestions(
            tuple(question for question, answer in pairs if same(question.expected, answer))
        )

    def _verification(self, prompt: str, questions: str) -> GenerateCall:
        user = user_message(f"{self.name} answers", prompt) + f"\nquestions: {questions}"
        return GenerateCall(ANSWERS, user, schema=ANSWERS_SCHEMA)

    def identity(self) -> list[Any]:
        """Return everything in the messages of both calls but the prompt."""
        return [*super().identity(), ANSWERS, user_message(f"{self.name} answers", ""), ANSWERS_SCHEMA]


def listed(questions: tuple[Question, ...]) -> str:
    """Return "1 Is there a dog? yes, no; 2 What color is the dog? black, white"."""
    return "; ".join(f"{n} {q.text} {', '.join(q.choices)}" for n, q in enumerate(questions, 1))


def answers(answer: str) -> list[str]:
    """Parse the texts in an answer of `ANSWERS_SCHEMA`.  Raises `ValueError`, `KeyError` or `TypeError`."""
    return [*map(text, orjson.loads(answer)["answers"])]


def same(expected: str, answer: str) -> bool:
    """Return True if both are equal but for case and surrounding spaces."""
    return expected.strip().lower() == answer.strip().lower()


ANSWERS = instructions("tifa_answers")
ANSWERS_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["answers"],
    "properties": {"answers": STRINGS},
}

TIFA = Style("tifa", instructions("tifa"), SCHEMA, parse)
TIFA_VERIFIED = Verified("tifa", TIFA.instructions, SCHEMA, parse)

parser = AnswerParser.of(TIFA)

ABOUT = re.compile(r"(?P<entity>.*?) \((?P<type>[^()]*)\)")


def parse_lines(answer: str) -> tuple[Question, ...]:
    """Parse the blocks "About ENTITY (TYPE):"; a question of an unknown type is dropped, as in their code."""
    found = []
    for about, question in blocks(before(answer, "\nDescription:")):
        element = ABOUT.match(about)
        if element and element["type"] in TYPES:
            found.append(replace(question, kind=element["type"], phrase=element["entity"]))
    return tuple(found)


def tifa_lines(name: str, texts: Texts) -> CompletionStyle:
    """Return the style of the released code with this text before the prompt: one call, answered in lines."""
    endings = {"": "Description: {prompt}\nEntities"}
    return CompletionStyle(name, "", {}, parse_lines, texts=texts, endings=endings)


lines_parser = AnswerParser("tifa_lines", TIFA, tifa_lines)
