"""Shared parts of styles: instructions from files, and strict parsing of the LLM's answers."""

from importlib.resources import files
from typing import Any

import orjson

from service.questions.sets import MAX_CHARACTERS, MAX_QUESTIONS


def instructions(name: str) -> str:
    """Return the text of `instructions/NAME.txt`, a system message."""
    return files(__package__).joinpath("instructions", f"{name}.txt").read_text(encoding="utf-8").strip()


def schema(list_name: str, **fields: Any) -> dict[str, Any]:
    """Return the JSON schema of {list_name: [{fields…}, …]} with required fields only."""
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


def without_wrapping(answer: str) -> str:
    """
    Return an LLM's answer without a byte order mark, its chain of thought and a code fence around the rest.

    A chain of thought ends with `</think>`, and may lack its `<think>`, which chat templates add to the
    prompt; then JSON or a fence has to follow.

    Raises:
        ValueError: nothing is left.
    """
    text = answer.strip().removeprefix("\ufeff").lstrip()
    _, ended, rest = text.partition("</think>")
    rest = rest.strip()
    if text.startswith("<think>"):
        text = rest
        if not ended:
            raise ValueError("it is a chain of thought without an end")
    elif ended and rest.startswith(("{", "```")) and not text.startswith("{"):
        text = rest
    if text.startswith("```") and text.endswith("```"):  # the first line may name a language
        text = text[3:-3].partition("\n")[2].strip() or text
    if not text:
        raise ValueError("it is empty")
    return text


def entries(answer: str, name: str) -> list[dict[str, Any]]:
    """Parse the list of that *name* in an answer.  Raises `ValueError`, `KeyError` or `TypeError`."""
    found = orjson.loads(answer)[name]
    if not isinstance(found, list) or any(not isinstance(entry, dict) for entry in found):
        raise ValueError(f"{name} is not a list of objects")
    if len(found) > MAX_QUESTIONS:
        raise ValueError(f"{len(found)} entries in {name}; at most {MAX_QUESTIONS}")
    return found


def text(value: Any) -> str:
    """Check a string of limited length.  Raises `ValueError`."""
    if not isinstance(value, str) or len(value) > MAX_CHARACTERS:
        raise ValueError("a text is not a string of ordinary length")
    return value


def number(value: Any) -> int:
    """Check an integer.  Raises `ValueError`."""
    if type(value) is not int:
        raise ValueError("an id is not an integer")
    return value
