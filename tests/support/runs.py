"""What is given to a part of a network."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def runs_of(part: torch.nn.Module) -> Iterator[list[dict[Any, Any]]]:
    """The inputs of each run of *part* while the context is open, by name or position."""
    runs: list[dict[Any, Any]] = []

    def note(module: torch.nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        runs.append({**dict(enumerate(inputs)), **named})

    hook = part.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield runs
    finally:
        hook.remove()
