"""What all styles share: their instructions as files, and answers of a question LLM read with care."""

from importlib.resources import files
from typing import Any

import orjson

from service.questions.sets import MAX_CHARACTERS, MAX_QUESTIONS


def instructions(name: str) -> str:
    """The text of `instructions/NAME.txt`, which a question LLM is given as the system message."""
    return files(__package__).joinpath("instructions", f"{name}.txt").read_text(encoding="utf-8").strip()


def schema(list_name: str, **fields: Any) -> dict[str, Any]:
    """JSON schema of {list_name: [{fields…}, …]}, every field required and no other allowed."""
    entry = {"type": "object", "additionalProperties": False, "required": [*fields], "properties": fields}
    entries = {"type": "array", "items": entry}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [list_name],
        "properties": {list_name: entries},
    }


STRING: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}
NUMBERS: dict[str, Any] = {"type": "array", "items": NUMBER}
STRINGS: dict[str, Any] = {"type": "array", "items": STRING}
BOOLEAN: dict[str, Any] = {"type": "boolean"}


def entries(answer: str, name: str) -> list[dict[str, Any]]:
    """The list of that *name* in an answer.  Raises `ValueError`, `KeyError` or `TypeError`."""
    found = orjson.loads(answer)[name]
    if not isinstance(found, list) or any(not isinstance(entry, dict) for entry in found):
        raise ValueError(f"{name} is not a list of objects")
    if len(found) > MAX_QUESTIONS:
        raise ValueError(f"{len(found)} entries in {name}; at most {MAX_QUESTIONS}")
    return found


def text(value: Any) -> str:
    """A string of ordinary length.  Raises `ValueError`."""
    if not isinstance(value, str) or len(value) > MAX_CHARACTERS:
        raise ValueError("a text is not a string of ordinary length")
    return value


def number(value: Any) -> int:
    """An integer.  Raises `ValueError`."""
    if type(value) is not int:
        raise ValueError("an id is not an integer")
    return value
