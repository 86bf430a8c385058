"""What a replay of published answers is."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Replay:
    """
    One metric's published answers.

    Attributes:
        help: what is computed, in one line.
        add_arguments: declares the files and options.
        numbers: what is printed, one object or one a line.  Raises `OSError` or `ValueError` for files that
            cannot be used.
    """

    help: str
    add_arguments: Callable[[ArgumentParser], None]
    numbers: Callable[[Namespace], Mapping[str, Any] | Sequence[Mapping[str, Any]]]
