"""DSG's questions (Cho et al. 2024, "Davidsonian Scene Graph"): yes or no, each with its parents."""

from typing import Any

import orjson

from service.questions.sets import MAX_CHARACTERS, Question
from service.questions.style import Style

INSTRUCTIONS = """\
You write questions that check whether an image shows what a prompt asked for, as a Davidsonian scene
graph (DSG). Split the prompt into its smallest facts: entities (whole, part), states, attributes
(color, size, shape, texture, material, type), counts, actions, relations (spatial, action, scale) and
the whole image's style. Write one question for each fact, answerable by yes or no from the image
alone, with "yes" expected. Number the questions from 1. A question about an attribute, a count or a
relation depends on the questions about the things it speaks of: when one of those is answered "no", it
is moot. Ask nothing twice and nothing that the prompt does not say. If the prompt describes nothing
that could be seen, write no question.
Answer with one JSON object: {"questions": [{"id": 1, "kind": "entity - whole", "text": "Is there a
motorcycle?", "depends_on": []}, {"id": 2, "kind": "attribute - color", "text": "Is the motorcycle
blue?", "depends_on": [1]}]}"""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["questions"],
    "properties": {
        "questions": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["id", "kind", "text", "depends_on"],
                "properties": {
                    "id": {"type": "integer"},
                    "kind": {"type": "string"},
                    "text": {"type": "string"},
                    "depends_on": {"type": "array", "items": {"type": "integer"}},
                },
            },
        }
    },
}


def parse(text: str) -> tuple[Question, ...]:
    """The questions in an answer that follows `SCHEMA`."""
    return tuple(read(entry) for entry in orjson.loads(text)["questions"])


def read(entry: dict[str, Any]) -> Question:
    """One question of an answer.  Raises `ValueError`, `KeyError` or `TypeError`."""
    number, text, kind = entry["id"], entry["text"], entry["kind"]
    parents = tuple(entry["depends_on"])
    if type(number) is not int or any(type(parent) is not int for parent in parents):
        raise ValueError("an id is not an integer")
    if not isinstance(text, str) or not isinstance(kind, str) or len(text) > MAX_CHARACTERS:
        raise ValueError("a text is not a string of ordinary length")
    return Question(number, text, kind, parents)


DSG = Style("dsg", INSTRUCTIONS, SCHEMA, parse)
