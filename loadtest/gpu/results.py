"""
Results as JSON lines: appended as soon as a step is measured, and read again by the next run.

A file begins with the machine that it is of.  Where the machine or a version changes, the new one follows,
and nothing before it counts.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

Machine = Mapping[str, str]
"""Facts of the machine by name: its card, driver, versions."""


@dataclass(frozen=True, slots=True)
class Row:
    """
    One line of the table.

    Attributes:
        what: what was measured.
        value: in *unit*; None if it was left out or failed, and *note* says why.
        share: of the limit that the part `limits` measured.
        least, most: the target, of the share if there is one, else of the value.
        failed: there was an error, so the step is measured again by the next run.
    """

    what: str
    value: float | None = None
    unit: str = ""
    share: float | None = None
    least: float | None = None
    most: float | None = None
    note: str = ""
    failed: bool = False

    @property
    def met(self) -> bool | None:
        """True if the target is met, None without a target or a figure."""
        figure = self.value if self.share is None else self.share
        if figure is None or (self.least is None and self.most is None):
            return None
        return (
            (-inf if self.least is None else self.least)
            <= figure
            <= (inf if self.most is None else self.most)
        )

    @property
    def red(self) -> bool:
        """True if it failed, or missed its target."""
        return self.failed or self.met is False

    @property
    def target(self) -> str:
        """The target in words; empty if there is none."""
        bounds = (("≥", self.least), ("≤", self.most))
        return ", ".join(f"{sign} {bound:.3g}" for sign, bound in bounds if bound is not None)


def left_out(what: str, reason: str) -> Row:
    """Return a row without a figure, which is not red."""
    return Row(what, note=f"left out: {reason}")


class Results:
    """The rows of a *file*, which may exist, on one *machine*."""

    def __init__(self, file: Path, machine: Machine) -> None:
        self._file = file
        self._rows: dict[tuple[str, str], list[Row]] = {}
        lines = file.read_text("utf-8").splitlines() if file.is_file() else []
        found: Machine | None = None
        for entry in filter(None, map(parsed, lines)):
            if "machine" in entry:
                found, self._rows = entry["machine"], {}
            else:
                rows = [Row(**row) for row in entry["rows"]]
                self._rows[entry["part"], entry["step"]] = rows
        if found != machine:
            self._rows = {}
            self._append({"machine": machine})

    def has(self, part: str, step: str) -> bool:
        """Return True if a step was measured without an error."""
        rows = self._rows.get((part, step))
        return rows is not None and not any(row.failed for row in rows)

    def add(self, part: str, step: str, rows: Iterable[Row]) -> None:
        """Store the rows of a step, in place of earlier ones."""
        self._rows[part, step] = [*rows]
        self._append({"part": part, "step": step, "rows": [asdict(row) for row in self._rows[part, step]]})

    def forget(self, part: str, step: str) -> None:
        """Drop the rows of a step, if there are any."""
        if self._rows.get((part, step)):
            self.add(part, step, [])

    def of(self, part: str) -> Iterator[Row]:
        """Yield the rows of a part, in the order in which its steps were first measured."""
        for (name, _), rows in self._rows.items():
            if name == part:
                yield from rows

    def value(self, part: str, what: str) -> float | None:
        """Return a figure that was measured before."""
        return next((row.value for row in self.of(part) if row.what == what), None)

    def _append(self, entry: Mapping[str, Any]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def parsed(line: str) -> dict[str, Any] | None:
    """Return the entry of a line; None for one that a killed run did not finish."""
    try:
        entry: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return None
    return entry
