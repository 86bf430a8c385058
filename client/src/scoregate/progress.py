"""The progress of long work on stderr, and lines above it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from tqdm import tqdm

from scoregate.text import shown

WIDTH = 80
LEFT_OUT = "files that are no pictures, left out"
TERMINAL_S, LOG_S = 0.2, 30.0  # between two updates; a log keeps each line


def columns(file: TextIO) -> int | None:
    """Return 80 for a terminal without a width, as in some containers, else None: tqdm finds the width."""
    try:
        return None if os.get_terminal_size(file.fileno()).columns else WIDTH
    except (OSError, ValueError):  # no terminal, or a file without a descriptor
        return None


class Progress(tqdm):  # type: ignore[misc,type-arg,unused-ignore]
    """
    A bar on a terminal, and a line every 30 seconds in a log.

    Args:
        total: the number of items, if known.
        leave: keep the last state.  Otherwise a run of less than 30 seconds prints no line in a log.
    """

    monitor_interval = 0  # no thread of tqdm's, since the process may fork

    def __init__(self, total: int | None, *, leave: bool = True, file: TextIO | None = None) -> None:
        file = file or sys.stderr
        every_s = TERMINAL_S if file.isatty() else LOG_S
        delay_s = 0.0 if leave or file.isatty() else every_s
        self.failed = 0
        super().__init__(
            total=total,
            leave=leave,
            file=file,
            ncols=columns(file),
            mininterval=every_s,
            miniters=1,
            delay=delay_s,
            smoothing=0,
        )

    def step(self, *, failed: bool = False, resumed: bool = False) -> None:
        """Count an item; *resumed* items are from an earlier run and do not count for the rate."""
        self.initial += resumed
        if failed:
            self.failed += 1
            self.set_postfix_str(f"{self.failed} with errors", refresh=False)
        self.update()

    @staticmethod
    def status_printer(file: TextIO) -> Callable[[str], Any]:
        """Return the function that prints a state: over the last one on a terminal, else as a line."""
        if file.isatty():
            printer: Callable[[str], Any] = tqdm.status_printer(file)
            return printer
        return lambda line: print(line, file=file, flush=True) if line else None


def say(text: str) -> None:
    """Print a line to stderr, above the bar if there is one."""
    write = Progress.write if sys.stderr.isatty() else print
    write(shown(text), file=sys.stderr)


def say_unused(what: str, names: Sequence[str]) -> None:
    """Print the number of files that are not used, and the first five, to stderr; nothing without any."""
    if names:
        say(f"{what}: {len(names)} ({', '.join(names[:5])}{', …' * (len(names) > 5)})")
