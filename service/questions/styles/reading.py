"""Shared parts of styles: instructions from files, and strict parsing of answers in JSON and in lines."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import orjson

from models.core.calls import GenerateCall
from service.questions.sets import MAX_CHARACTERS, MAX_QUESTIONS, Question, identity
from service.questions.style import Style


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


BLOCK = re.compile(r"About (?P<about>.+):$|Q: (?P<text>.*)$|Choices: (?P<choices>.*)$|A: (?P<answer>.*)$")


@dataclass(frozen=True)
class CompletionStyle(Style):
    """
    A style whose calls are one user message each, which ends where the LLM's answer begins, as in the papers'
    code: without a system message and without a schema.

    Attributes:
        texts: instructions and examples, by the name of the call.
        endings: the rest of each user message, with the fields `{prompt}` and `{written}` (by earlier calls).
    """

    texts: Mapping[str, str] = field(kw_only=True)
    endings: Mapping[str, str] = field(kw_only=True)

    def step(self, name: str, prompt: str, written: str = "") -> GenerateCall:
        """Return the call of that name."""
        ending = self.endings[name].format(prompt=prompt, written=written)
        return GenerateCall("", f"{self.texts[name]}\n\n{ending}")

    def call(self, prompt: str) -> GenerateCall:
        """Return the only call of a style with one."""
        return self.step("", prompt)

    def identity(self) -> list[Any]:
        """Return everything in the messages of all calls but the prompt."""
        return [[name, self.texts[name], ending] for name, ending in self.endings.items()]


def before(text: str, next_item: str) -> str:
    """Return the part of *text* before *next_item*, which an LLM may add after its answer."""
    return text.partition(next_item)[0].strip()


def blocks(text: str) -> Iterator[tuple[str, Question]]:
    """
    Yield the questions with choices in a text, numbered from 1, each with the line "About …:" above it.

    As in TIFA's released code, questions without choices, repeated questions, and those whose answer is not
    among the choices are dropped.
    """
    about, asked, choices = "", "", list[str]()
    seen = set[tuple[str, str]]()
    for match in filter(None, map(BLOCK.match, map(str.strip, text.splitlines()))):
        if match["about"] is not None:
            about = match["about"]
        elif match["text"] is not None:
            asked, choices = match["text"], []
        elif match["choices"] is not None:
            choices = [*dict.fromkeys(filter(None, map(str.strip, match["choices"].split(","))))]
        else:
            found = Question(len(seen) + 1, asked, expected=match["answer"].strip(), choices=tuple(choices))
            if valid(found) and identity(found) not in seen:
                seen.add(identity(found))
                yield about, found
            asked, choices = "", []


def valid(question: Question) -> bool:
    """Return True for a question with at least two choices, one of which is expected."""
    return bool(question.text) and question.expected in question.choices and len(question.choices) > 1


def numbered(text: str, names: Sequence[int] | None = None) -> dict[int, str]:
    """
    Parse the lines "number | content".

    Raises:
        ValueError: a line has another form, a number is repeated, or the numbers are not *names*.
    """
    found: dict[int, str] = {}
    for line in filter(None, map(str.strip, text.rpartition("output:")[2].splitlines())):
        id, bar, content = line.partition("|")
        if not bar or not id.strip().isdecimal() or int(id) in found:
            raise ValueError("a line is not a new number, a bar and a text")
        found[int(id)] = content.strip()
    if names is not None and found.keys() != set(names):
        raise ValueError("the numbers of the questions are not those of the tuples")
    return found
