"""A question style: what a question LLM is told to write, and how its answer is read."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from models.core.calls import GenerateCall
from models.families.question_llm.prompt import user_message
from service.questions.sets import Question

Ask = Callable[[GenerateCall], Awaitable[str]]
"""Have the question LLM answer a call; the text it wrote."""


class Written(NamedTuple):
    """Questions, and the words of the prompt that should have had one and got none."""

    questions: tuple[Question, ...]
    unasked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Style:
    """
    One way of asking about a prompt.

    A style that needs several calls of the LLM overrides `write`, and `told` with all that it says there;
    one that knows what it could not ask about overrides `written` in place of `write`.

    Attributes:
        instructions: the system message.
        schema: JSON schema of the answer.
        parse: the questions in an answer.  Raises `ValueError`, `KeyError` or `TypeError` for any other text.
    """

    name: str
    instructions: str
    schema: Mapping[str, Any]
    parse: Callable[[str], tuple[Question, ...]]

    async def write(self, ask: Ask, prompt: str) -> tuple[Question, ...]:
        """The questions about *prompt*.  Raises what *ask* and `parse` raise."""
        return self.parse(await ask(self.call(prompt)))

    async def written(self, ask: Ask, prompt: str) -> Written:
        """The same, with what is left unasked."""
        return Written(await self.write(ask, prompt))

    def call(self, prompt: str) -> GenerateCall:
        """What the LLM is asked."""
        return GenerateCall(self.instructions, user_message(self.name, prompt), schema=self.schema)

    def identity(self) -> list[Any]:
        """Everything that the LLM is told beside the prompt."""
        return [self.instructions, user_message(self.name, ""), self.schema]

    @cached_property
    def hash(self) -> str:
        """Changes with anything that the LLM is told beside the prompt."""
        return hashlib.sha256(orjson.dumps(self.identity(), option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
