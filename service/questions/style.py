"""A question style: the instructions to a question LLM, and the parser of its answer."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from models.core.calls import GenerateCall
from models.families.question_llm import user_message
from service.questions.sets import Question

Ask = Callable[[GenerateCall], Awaitable[str]]
"""Runs a call of the question LLM, and returns its text."""


class Written(NamedTuple):
    """Questions, and the words of the prompt that lack one."""

    questions: tuple[Question, ...]
    unasked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Style:
    """
    One way to write questions about a prompt.

    A style with several calls of the LLM overrides `write`, and `identity` with everything in its messages.
    One that reports words without a question overrides `written` in place of `write`.

    Attributes:
        instructions: the system message.
        schema: JSON schema of the answer.
        parse: returns the questions in an answer.  Raises `ValueError`, `KeyError` or `TypeError`.
    """

    name: str
    instructions: str
    schema: Mapping[str, Any]
    parse: Callable[[str], tuple[Question, ...]]

    async def write(self, ask: Ask, prompt: str) -> tuple[Question, ...]:
        """Return the questions about *prompt*.  Raises the errors of *ask* and `parse`."""
        return self.parse(await ask(self.call(prompt)))

    async def written(self, ask: Ask, prompt: str) -> Written:
        """Return the questions, and the words of the prompt that lack one."""
        return Written(await self.write(ask, prompt))

    def call(self, prompt: str) -> GenerateCall:
        """Return the call of the LLM."""
        return GenerateCall(self.instructions, user_message(self.name, prompt), schema=self.schema)

    def identity(self) -> list[Any]:
        """Return everything in the LLM's messages but the prompt."""
        return [self.instructions, user_message(self.name, ""), self.schema]

    @cached_property
    def hash(self) -> str:
        """A hash of everything in the LLM's messages but the prompt."""
        return hashlib.sha256(orjson.dumps(self.identity(), option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
