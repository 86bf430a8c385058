"""A bar on stderr: how far a long command is."""

import sys
import time
from collections.abc import Callable
from typing import TextIO

WIDE = 30
DRAWN_S = 0.1  # between two drawings on a terminal
TOLD_S = 30.0  # between two lines where there is none


class Progress:
    """Counts to *total*.  On a terminal one line is drawn over, elsewhere few lines stay."""

    def __init__(
        self, total: int, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.total, self.stream, self.clock = total, stream or sys.stderr, clock
        self.terminal = self.stream.isatty()
        self.begun = self.told = clock()
        self.done = self.asked = self.failed = 0

    def step(self, *, failed: bool = False, asked: bool = True) -> None:
        """One more is done; *asked* by this run, or held from an earlier one."""
        self.done += 1
        self.asked += asked
        self.failed += failed
        now = self.clock()
        if now - self.told >= (DRAWN_S if self.terminal else TOLD_S):
            self.told = now
            self.stream.write(f"\r\033[K{self.line(now)}" if self.terminal else f"{self.line(now)}\n")
            self.stream.flush()

    def line(self, now: float) -> str:
        """The bar, the counts, the pace and the time that is left."""
        share = self.done / self.total if self.total else 1.0
        bar = "#" * round(WIDE * share)
        text = f"[{bar:{WIDE}}] {self.done} of {self.total}"
        if self.failed:
            text += f", {self.failed} without a score"
        pace = self.asked / (now - self.begun) if now > self.begun else 0.0
        if pace and self.done < self.total:
            text += f", {pace:.1f}/s, {duration((self.total - self.done) / pace)} left"
        return text

    def close(self) -> None:
        """Leave the terminal's line empty."""
        if self.terminal:
            self.stream.write("\r\033[K")
            self.stream.flush()


def duration(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
