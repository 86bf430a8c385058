"""The results file of `scoregate batch`: appended during a run, sorted at its end; read also offline."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from scoregate.data.columns import QUESTION_SET
from scoregate.data.datasets import Dataset
from scoregate.data.rows import RELATED, Row, digest
from scoregate.data.shards import stem
from scoregate.records import BadInput, check_regular
from scoregate.resume import is_torn
from scoregate.runs.lines import Key, Line, dumped, finite, is_unreadable, key, loaded
from scoregate.runs.plan import Plan
from scoregate.runs.tables import WRITERS, read_lines

KINDS = (".jsonl", *WRITERS)


def check_kind(file: Path) -> None:
    """Raise `BadInput` for a file of another kind than results have."""
    if file.suffix.lower() not in KINDS:
        raise BadInput(f"{file}: the name of the results must end in {', '.join(KINDS)}")


def journal_of(out: Path) -> Path:
    """Return the path of the lines of a run: OUT itself, or for a table a file next to it."""
    return out.with_name(f"{out.name}.part.jsonl") if out.suffix.lower() in WRITERS else out


def files_of(shards: Iterable[Path], folder: Path) -> dict[Path, Path]:
    """Return the file of each shard's results in *folder*, with the shard."""
    return {folder / f"{stem(shard)}.parquet": shard for shard in shards}


class Results:
    """
    Lines by row of the data set, as a context manager; its exit sorts the file.

    During a run lines are appended to a JSON Lines file: OUT itself, or for a table a journal next to it.
    After a kill, all lines but an incomplete last one are still there.

    Args:
        whole: write a table only if no exception ends the run, so that the file has every row or is absent.

    Raises:
        BadInput: OUT holds something else, or scores of another plan.
    """

    def __init__(self, out: Path, plan: Plan, name: Path | None = None, *, whole: bool = False) -> None:
        self.out, self.plan, self.whole = out, plan, whole
        self.write_table = WRITERS.get(out.suffix.lower())
        self.journal = journal_of(out)
        self.name = name or self.journal  # for people
        self.held: dict[Key, int] = {}  # the offset of the line of each row of earlier runs
        self.order: dict[int, int] = {}  # the offset of the line of each row of this run
        self.end = self.count = 0
        self.sets: dict[str, Any] | None = None  # question sets by id, where they are kept
        self.set_ids: set[str] = set()  # that the lines of this run name

    def __enter__(self) -> "Results":
        check_kind(self.out)
        check_regular(self.journal)
        written = self.out.with_name(f"{self.out.name}.new")  # it takes the place of a file in one step
        if self.write_table and self.out.exists() and not self.journal.exists():
            with written.open("wb") as file:
                file.writelines(map(dumped, read_lines(self.out)))
            os.replace(written, self.journal)
        self.file = self.journal.open("r+b" if self.journal.exists() else "w+b")
        try:
            self.index()
        except BadInput:
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
        """Return the line at an offset; `index` and `add` have let in valid ones only."""
        self.file.seek(start)
        content: Line = json.loads(self.file.readline())
        return content

    def keep(self, row: Row, known: Line) -> None:
        """Keep a line of an earlier run, with the row's current number and columns."""
        start = self.held[key(known)]
        self.order[row.number] = start
        self.set_ids.update(known.get("question_sets", {}).values())
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
        self.set_ids.update(line.get("question_sets", {}).values())
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
        if self.whole and kind and starts:
            self.file.close()
            return
        written = self.out.with_name(f"{self.out.name}.new")
        with self.file:
            if self.write_table and starts:
                self.write_table(written, lambda: map(self.line, starts), self.plan.metrics)
            elif not in_order:
                with written.open("wb") as file:
                    file.writelines(dumped(self.line(start)) for start in starts)
        if written.exists():
            os.replace(written, self.out)
        if self.write_table or not starts:
            self.journal.unlink()


NOT_SCORED, CHANGED = "not_scored", "picture_changed"


@contextmanager
def existing(
    dataset: Dataset, file: Path, metrics: Sequence[str] | None = None, *, any_models: bool = False
) -> Iterator[Results]:
    """
    Yield the results in *file* for the rows of *dataset*; a missing result is an error.

    Raises:
        BadInput: the file holds something else, other *metrics*, or scores that are not comparable.
        OSError: the file cannot be read.
    """
    plan = plan_in(file)
    plan = replace(plan, metrics=metrics or plan.metrics, any_models=any_models)
    dataset = replace(dataset, metrics=plan.metrics, asking=pinned(file), texts=texts_of(file))
    with TemporaryDirectory() as folder, Results(Path(shutil.copy(file, folder)), plan, file) as results:
        for row in dataset:
            take(results, row)
        yield results


def plan_in(file: Path) -> Plan:
    """Return the plan of the run that wrote *file*, with the models of its first line with a score."""
    check_kind(file)
    first, mixed = dict[str, Any](), False
    metrics, models = dict[str, None](), dict[str, str]()
    for each in lines_of(file):
        mixed |= "own_metrics" in each
        metrics |= dict.fromkeys([*each["scores"], *each["errors"]])
        models = {**each.get("models", {}), **models}
        first = first if first.get("scores") else each if each["scores"] else first or each
    if not first:
        raise BadInput(f"{file}: there is no result")
    return Plan(
        [*metrics] if mixed else [*first["scores"], *first["errors"]],
        models if mixed else first.get("models", {}),
        first.get("options", {}),
        lower=first.get("lower_is_better", ()),
        orient=first.get("orient"),
        mixed=mixed,
    )


def pinned(file: Path) -> list[str]:
    """Return the metrics whose question set is pinned in a row of *file*."""
    own = chain.from_iterable(line.get("own_options", {}).items() for line in lines_of(file))
    return sorted({metric for metric, options in own if QUESTION_SET in options})


def texts_of(file: Path) -> set[str]:
    """Return the options that are texts in all rows of *file*, by `METRIC.OPTION`."""
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for each in lines_of(file):
        for metric, options in each.get("own_options", {}).items():
            for option, value in options.items():
                found[isinstance(value, str)].add(f"{metric}.{option}")
    return found[True] - found[False]


def lines_of(file: Path) -> Iterator[Line]:
    """Yield the lines of *file*.  Raises `BadInput` for an invalid one."""
    if file.suffix.lower() in WRITERS:
        yield from read_lines(file)
        return
    check_regular(file)
    with file.open("rb") as opened:
        for number, data in enumerate(opened, 1):
            yield loaded(data, f"{file}, line {number}")


def take(results: Results, row: Row) -> None:
    """Add the row's line to *results*; a picture that is no longer readable keeps its scores."""
    start = results.held.get(row.key)
    known = None if start is None else results.line(start)
    plan = results.plan
    if row.fault:
        results.add(row, plan.unreadable(row, row.fault))
    elif known is None:
        results.add(row, plan.without_scores(row, NOT_SCORED, "the results hold no line of this row"))
    elif (sha256 := known["sha256"]) and sha256 not in (digests(row) or {sha256}):
        results.add(row, plan.without_scores(row, CHANGED, "the results are about another picture"))
    else:
        results.keep(row, known)


def digests(row: Row) -> set[str]:
    """
    Return the hash of the row's picture, alone and with its related pictures; empty if one is unreadable.

    The results do not say which of the related pictures the metrics used.
    """
    try:
        data, *frames = row.read_frames()
        related = {column: row.read_related(column) for column in RELATED}
    except (OSError, ValueError):
        return set()
    uses = chain.from_iterable(combinations(RELATED, count) for count in range(len(RELATED) + 1))
    return {digest(data, *frames, *chain.from_iterable(related[column] for column in used)) for used in uses}
