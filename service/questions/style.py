"""Question styles, the profile's too: the instructions to a question LLM, and the parser of its answer."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, NamedTuple, Self

import orjson

from models.core.calls import GenerateCall
from models.core.messages import reason_of
from models.families.question_llm import user_message
from service.core.settings import SettingsError
from service.core.settings.scoring import StyleSettings
from service.questions import styles as package
from service.questions.sets import Question

Ask = Callable[[GenerateCall], Awaitable[str]]
"""Runs a call of the question LLM, and returns its text."""


class WrittenQuestions(NamedTuple):
    """Questions, and the words of the prompt that lack one."""

    questions: tuple[Question, ...] = ()
    unasked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Style:
    """
    One way to write questions about a prompt.

    A style with several calls of the LLM overrides `write`, and `identity` with everything in its messages.

    Attributes:
        instructions: the system message.
        schema: JSON schema of the answer.
        parse: returns the questions in an answer.  Raises `ValueError`, `KeyError` or `TypeError`.
    """

    name: str
    instructions: str
    schema: Mapping[str, Any]
    parse: Callable[[str], tuple[Question, ...]]

    async def write(self, ask: Ask, prompt: str) -> WrittenQuestions:
        """Return the questions about *prompt*.  Raises the errors of *ask* and `parse`."""
        return WrittenQuestions(self.parse(await ask(self.call(prompt))))

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


Texts = Mapping[str, str]
"""Instructions with examples, by the name of the call; a style's only call has an empty name."""


@dataclass(frozen=True)
class AnswerParser:
    """
    A form of the LLM's messages and answers.

    Attributes:
        base: the style whose metrics can use it.
        make: returns a style with a name and the texts of its calls.
        calls: the names of the calls.
    """

    name: str
    base: Style
    make: Callable[[str, Texts], Style]
    calls: tuple[str, ...] = ("",)

    @classmethod
    def of(cls, style: Style) -> Self:
        """Return the parser of a style with one call: the form that the service's own instructions need."""
        return cls(style.name, style, lambda name, texts: replace(style, name=name, instructions=texts[""]))


@cache
def parsers() -> Mapping[str, AnswerParser]:
    """Return every parser that a module of `service.questions.styles` declares, by name."""
    modules = [import_module(f"{package.__name__}.{info.name}") for info in iter_modules(package.__path__)]
    declared = [
        value for module in modules for value in vars(module).values() if isinstance(value, AnswerParser)
    ]
    return {parser.name: parser for parser in declared}


def styles_of(tables: Mapping[str, StyleSettings], taken: set[str]) -> dict[str, dict[str, Style]]:
    """
    Return the styles of a profile, by name, below the name of the style whose metrics can use them.

    Args:
        tables: `questions.styles`.
        taken: names of metrics and of their styles.

    Raises:
        SettingsError: a name is taken, there is no such parser, or a file is missing, empty or for no call.
    """
    found: dict[str, dict[str, Style]] = {}
    for name, table in tables.items():
        place = f"questions.styles.{name}"
        if name in taken:
            raise SettingsError(f"{place}: there is a metric or a style of that name")
        parser = parsers().get(table.parser)
        if parser is None:
            known = ", ".join(parsers())
            raise SettingsError(f"{place}.parser: there is no parser {table.parser!r}; there are {known}")
        texts = texts_of(f"{place}.instructions", table.instructions, parser)
        if table.examples is not None:
            examples = texts_of(f"{place}.examples", table.examples, parser)
            texts = {call: f"{text}\n\n{examples[call]}" for call, text in texts.items()}
        found.setdefault(parser.base.name, {})[name] = parser.make(name, texts)
    return found


def texts_of(place: str, files: Path | Mapping[str, Path], parser: AnswerParser) -> dict[str, str]:
    """Return the text of the file of each call, without newlines at the end.  Raises `SettingsError`."""
    by_call = {"": files} if isinstance(files, Path) else files
    if by_call.keys() != set(parser.calls):
        needed = "one file" if parser.calls == ("",) else f"a table with {', '.join(parser.calls)}"
        raise SettingsError(f"{place}: this parser needs {needed}")
    texts = {}
    for call in parser.calls:
        key = f"{place}.{call}" if call else place
        try:
            texts[call] = by_call[call].read_text("utf-8-sig").rstrip("\n")
        except (OSError, ValueError) as exc:
            raise SettingsError(f"{key}: {reason_of(exc)}") from exc
        if not texts[call].strip():
            raise SettingsError(f"{key}: {by_call[call]} is empty")
    return texts
