"""How far a long run is, on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from scoregate.results import Result

TERMINAL_S, LOG_S = 0.2, 30.0  # between two lines; a log keeps each of them


class Progress:
    """A line that is written over on a terminal, and a line now and then in a log."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._done = self._failed = 0
        self._began = time.monotonic()
        self._told = self._began
        self._terminal = sys.stderr.isatty()

    def add(self, results: Sequence[Result]) -> None:
        """Count results; tell, if it was not told lately."""
        self._done += len(results)
        self._failed += sum(bool(result.errors) for result in results)
        now = time.monotonic()
        if now - self._told >= (TERMINAL_S if self._terminal else LOG_S):
            self._told = now
            self._tell("\r" if self._terminal else "", "" if self._terminal else "\n")

    def close(self) -> None:
        """The last line."""
        self._tell("\r" if self._terminal else "", "\n")

    def _tell(self, before: str, after: str) -> None:
        passed = time.monotonic() - self._began
        pace = self._done / passed if passed else 0.0
        line = f"{self._done}{f' of {self._total}' if self._total is not None else ''} scored, {pace:.1f}/s"
        if self._failed:
            line += f", {self._failed} with errors"
        if self._total and pace and self._done < self._total:
            line += f", {(self._total - self._done) / pace:.0f} s left"
        sys.stderr.write(before + line + ("\x1b[K" if before else "") + after)
        sys.stderr.flush()
