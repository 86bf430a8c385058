"""The results of `scoregate batch`: kept as they come, continued by the next run, ordered at the end."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from scoregate.cli.datasets import Row
from scoregate.cli.exits import UsageFault
from scoregate.cli.lines import Key, Line, Plan, dumped, finite, key, loaded
from scoregate.cli.parquet import read_lines, write_lines

KINDS = (".jsonl", ".parquet")


class Results:
    """
    Lines by row of the data set, as a context; leaving it puts the file in order.

    While a run is under way its lines are added to a JSON Lines file: OUT itself, or for Parquet one
    beside it.  A process that is killed leaves all of them but half of one.

    Raises:
        UsageFault: OUT holds something else, or scores of another plan.
    """

    def __init__(self, out: Path, plan: Plan, name: Path | None = None) -> None:
        self.out, self.plan = out, plan
        self.parquet = out.suffix.lower() == ".parquet"
        self.journal = out.with_name(f"{out.name}.part.jsonl") if self.parquet else out
        self.name = name or self.journal  # for people
        self.held: dict[Key, int] = {}  # where the line of each row of earlier runs begins
        self.order: dict[int, int] = {}  # where the line of each row of this run begins, by its number
        self.end = self.count = 0

    def __enter__(self) -> "Results":
        if self.out.suffix.lower() not in KINDS:
            raise UsageFault(f"{self.out}: the name of the results must end in {' or '.join(KINDS)}")
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
        """Find the lines of earlier runs; half a line, of a run that was killed, is cut off."""
        for number, data in enumerate(self.file, 1):
            if not data.endswith(b"\n"):
                break
            place = f"{self.name}, line {number}"
            known = loaded(data, place)
            self.plan.check(known, place)
            self.held[key(known)] = self.end
            self.end += len(data)
            self.count += 1
        else:
            return
        if not self.end:  # one line without an end may be anybody's file
            loaded(data, str(self.name))
        self.file.truncate(self.end)

    def earlier(self, row: Row, sha256: str) -> Line | None:
        """Return the line of this very picture and prompt, if there is one."""
        start = self.held.get((row.image, row.prompt))
        if start is None:
            return None
        known = self.line(start)
        return known if known["sha256"] == sha256 else None

    def line(self, start: int) -> Line:
        self.file.seek(start)
        return loaded(self.file.readline(), str(self.name))

    def keep(self, row: Row, known: Line) -> None:
        """Take over a line of an earlier run, for the place and the columns that its row has now."""
        start = self.held[key(known)]
        self.order[row.number] = start
        if known["row"] != row.number or known.get("columns", {}) != finite(row.columns):
            columns = {"columns": finite(row.columns)} if row.columns else {}
            self.add(
                row,
                {name: v for name, v in known.items() if name != "columns"} | {"row": row.number} | columns,
            )

    def add(self, row: Row, line: Line) -> None:
        """Keep *line*, in place of an earlier one of the same row."""
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
        """Where the lines begin that are of no row of this run; they stay, behind all others."""
        return sorted(set(self.held.values()) - set(self.order.values()))

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
