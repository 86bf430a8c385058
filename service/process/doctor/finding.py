"""The result of one check, and the exit status of several."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

WRONG, BROKEN, LATER = 2, 3, os.EX_TEMPFAIL  # as `serve` ends


@dataclass(frozen=True, slots=True)
class Finding:
    """
    What a check found.

    Attributes:
        name: of the check.
        fact: what is there, or what is wrong.
        remedy: what to do; empty if all is well.
        status: 0 if all is well, otherwise that of a start which would fail for this reason.
        checked: False if nothing was there to check.
    """

    name: str
    fact: str
    remedy: str = ""
    status: int = 0
    checked: bool = True

    def __str__(self) -> str:
        """Format the finding in one line."""
        mark = "✗" if self.status else "✓" if self.checked else "-"
        line = f"{mark} {self.name}: {self.fact}" + (f": {self.remedy}" if self.status else "")
        return " ".join(line.split())


def status_of(findings: Iterable[Finding]) -> int:
    """Return the exit status: what a person has to change comes first, and what may pass comes last."""
    statuses = {finding.status for finding in findings}
    return next((status for status in (WRONG, BROKEN, LATER) if status in statuses), 0)
