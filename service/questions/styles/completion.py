"""Styles whose calls are one user message that ends where the LLM's answer begins, as in the papers' code."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from models.core.calls import GenerateCall
from service.questions.sets import Question, identity
from service.questions.style import Style

BLOCK = re.compile(r"About (?P<about>.+):$|Q: (?P<text>.*)$|Choices: (?P<choices>.*)$|A: (?P<answer>.*)$")


@dataclass(frozen=True)
class CompletionStyle(Style):
    """
    A style without a system message and without a schema.

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
