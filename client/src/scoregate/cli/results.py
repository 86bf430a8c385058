"""The results file of `scoregate batch`: appended during a run, sorted at its end."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from scoregate.cli.exits import UsageFault
from scoregate.cli.lines import Key, Line, Plan, dumped, finite, is_unreadable, key, loaded
from scoregate.cli.parquet import read_lines, write_lines
from scoregate.cli.rows import Row
from scoregate.images import check_regular
from scoregate.resume import is_torn

KINDS = (".jsonl", ".parquet")


class Results:
    """
    Lines by row of the data set, as a context manager; its exit sorts the file.

    During a run lines are appended to a JSON Lines file: OUT itself, or for Parquet a journal next to it.
    After a kill, all lines but an incomplete last one are still there.

    Raises:
        UsageFault: OUT holds something else, or scores of another plan.
    """

    def __init__(self, out: Path, plan: Plan, name: Path | None = None) -> None:
        self.out, self.plan = out, plan
        self.parquet = out.suffix.lower() == ".parquet"
        self.journal = out.with_name(f"{out.name}.part.jsonl") if self.parquet else out
        self.name = name or self.journal  # for people
        self.held: dict[Key, int] = {}  # the offset of the line of each row of earlier runs
        self.order: dict[int, int] = {}  # the offset of the line of each row of this run
        self.end = self.count = 0
        self.sets: dict[str, Any] | None = None  # question sets by id, where they are kept

    def __enter__(self) -> "Results":
        if self.out.suffix.lower() not in KINDS:
            raise UsageFault(f"{self.out}: the name of the results must end in {' or '.join(KINDS)}")
        check_regular(self.journal)
        if self.parquet and self.out.exists() and not self.journal.exists():
            self.journal.write_bytes(b"".join(map(dumped, read_lines(self.out))))
        self.file = self.journal.open("r+b" if self.journal.exists() else "w+b")
        try:
            self.index()
        except UsageFault:
            self.file.close()
            raise
        return self

    def index(self) -> None:
        """Index the lines of earlier runs; cut off a last line of ours that is incomplete."""
        for number, data in enumerate(self.file, 1):
            place = f"{self.name}, line {number}"
            if is_torn(data, "row", "image"):
                break
            known = loaded(data, place)
            if not data.endswith(b"\n"):
                break
            self.plan.check(known, place)
            self.held[key(known)] = self.end
            self.end += len(data)
            self.count += 1
        self.file.truncate(self.end)

    def earlier(self, row: Row, sha256: str) -> Line | None:
        """Return the line of the same picture, prompt and options, if any."""
        start = self.held.get(row.key)
        if start is None:
            return None
        known = self.line(start)
        return known if known["sha256"] == sha256 else None

    def line(self, start: int) -> Line:
        self.file.seek(start)
        return loaded(self.file.readline(), str(self.name))

    def keep(self, row: Row, known: Line) -> None:
        """Keep a line of an earlier run, with the row's current number and columns."""
        start = self.held[key(known)]
        self.order[row.number] = start
        if known["row"] != row.number or known.get("columns", {}) != finite(row.columns):
            columns = {"columns": finite(row.columns)} if row.columns else {}
            self.add(
                row,
                {name: v for name, v in known.items() if name != "columns"} | {"row": row.number} | columns,
            )

    def add(self, row: Row, line: Line) -> None:
        """Append *line*, in place of an earlier one of the same row."""
        data = dumped(line)
        self.file.seek(self.end)
        self.file.write(data)
        self.file.flush()
        self.order[row.number] = self.end
        self.held[key(line)] = self.end
        self.end += len(data)
        self.count += 1

    def lines(self) -> Iterator[Line]:
        """Yield the lines of this run, in the order of the data set."""
        for number in sorted(self.order):
            yield self.line(self.order[number])

    @property
    def left_over(self) -> list[int]:
        """The offsets of lines that were sent and have no row in this run; they stay, after all others."""
        others = set(self.held.values()) - set(self.order.values())
        return sorted(start for start in others if not is_unreadable(self.line(start)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        starts = [*(self.order[number] for number in sorted(self.order)), *self.left_over]
        in_order = len(starts) == self.count and starts == sorted(starts)
        written = self.out.with_name(f"{self.out.name}.new")  # it takes the place of OUT in one step
        with self.file:
            if self.parquet and starts:
                write_lines(written, lambda: map(self.line, starts), self.plan.metrics)
            elif not in_order:
                with written.open("wb") as file:
                    file.writelines(dumped(self.line(start)) for start in starts)
        if written.exists():
            os.replace(written, self.out)
        if self.parquet or not starts:
            self.journal.unlink()
