"""A parser that a profile's style can name: the form of the LLM's messages and answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from service.questions.style import Style

Texts = Mapping[str, str]
"""Instructions with examples, by the name of the call; a style's only call has an empty name."""


@dataclass(frozen=True)
class Parser:
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
