"""What a question LLM is told, per style, and the form its answer must have."""

import hashlib
from functools import cache
from typing import Any

import orjson

from models.question_llm import user_message

DSG = """\
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

INSTRUCTIONS = {"dsg": DSG}

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


def messages(prompt: str, style: str) -> tuple[str, str]:
    """System and user message."""
    return INSTRUCTIONS[style], user_message(style, prompt)


@cache
def template_hash(style: str) -> str:
    """Changes with anything the LLM is told besides the prompt."""
    told = [*messages("", style), SCHEMA]
    return hashlib.sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
