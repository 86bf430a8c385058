"""The results file of `scoregate batch`: appended during a run, sorted at its end; read also offline."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from itertools import chain, combinations
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, BinaryIO, Self

from scoregate.data.datasets import Dataset
from scoregate.data.rows import QUESTION_SET, RELATED, Row, digest
from scoregate.data.shards import stem
from scoregate.records import BadInput, check_regular
from scoregate.runs.plan import Key, Line, Plan, finite, is_unreadable, key, loaded
from scoregate.runs.settings import KINDS
from scoregate.runs.tables import WRITERS, read_lines
from scoregate.store import Store, dumped, opened


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


class Results(Store[Key]):
    """
    Lines by row of the data set.

    Args:
        file: with the lines of earlier runs; by default there are none, and lines are in memory.

    Attributes:
        order: the offset of the line of each row of this run.
        sets: question sets by id, where they are kept.
        set_ids: those that the lines of this run name.

    Raises:
        BadInput: the file holds something else, or scores of another plan.
    """

    FIRST = ("row", "image")

    def __init__(self, plan: Plan, file: BinaryIO | None = None, name: str = "results") -> None:
        self.plan = plan
        self.order: dict[int, int] = {}
        self.sets: dict[str, Any] | None = None
        self.set_ids: set[str] = set()
        super().__init__(file or BytesIO(), name)

    def parsed(self, data: bytes, place: str) -> Line:
        """Return a line of an earlier run.  Raises `BadInput`."""
        line = loaded(data, place)
        self.plan.check(line, place)
        return line

    def key(self, line: Line) -> Key:
        """Return the key of the line's row."""
        return key(line)

    def earlier(self, row: Row) -> Line | None:
        """Return the line of the same pictures, which were read, with the same prompt and options, if any."""
        known = self.get(row.key)
        return known if known and known["sha256"] == row.sha256 else None

    def keep(self, row: Row, known: Line) -> None:
        """Keep a line of an earlier run, with the row's current number and columns."""
        self.order[row.number] = self.starts[key(known)]
        self.set_ids.update(known.get("question_sets", {}).values())
        if known["row"] != row.number or known.get("columns", {}) != finite(row.columns):
            columns = {"columns": finite(row.columns)} if row.columns else {}
            self.add(
                row,
                {name: v for name, v in known.items() if name != "columns"} | {"row": row.number} | columns,
            )

    def add(self, row: Row, line: Line) -> None:
        """Append *line*, in place of an earlier one of the same row."""
        self.order[row.number] = self.append(line, row.key)
        self.set_ids.update(line.get("question_sets", {}).values())
        self.flush()

    def lines(self) -> Iterator[Line]:
        """Yield the lines of this run, in the order of the data set."""
        for number in sorted(self.order):
            yield self.at(self.order[number])

    @property
    def left_over(self) -> list[int]:
        """The offsets of lines that were sent and have no row in this run; they stay, after all others."""
        others = set(self.starts.values()) - set(self.order.values())
        return sorted(start for start in others if not is_unreadable(self.at(start)))


class ResultsFile(Results):
    """
    A file of results, as a context manager; its exit sorts the file.

    During a run lines are appended to a JSON Lines file: OUT itself, or for a table a journal next to it.

    Args:
        whole: write a table only if no exception ends the run, so that the file has every row or is absent.

    Raises:
        BadInput: OUT holds something else, or scores of another plan.
    """

    def __init__(self, out: Path, plan: Plan, *, whole: bool = False) -> None:
        check_kind(out)
        self.out, self.whole = out, whole
        self.write_table = WRITERS.get(out.suffix.lower())
        self.journal = journal_of(out)
        self._written = out.with_name(f"{out.name}.new")  # it takes the place of a file in one step
        if self.write_table and out.exists() and not self.journal.exists():
            with self._written.open("wb") as file:
                file.writelines(map(dumped, read_lines(out)))
            os.replace(self._written, self.journal)
        super().__init__(plan, opened(self.journal), str(self.journal))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        starts = [*(self.order[number] for number in sorted(self.order)), *self.left_over]
        in_order = len(starts) == self.count and starts == sorted(starts)
        if self.whole and kind and starts:
            self.close()
            return
        try:
            if self.write_table and starts:
                self.write_table(self._written, lambda: map(self.at, starts), self.plan.metrics)
            elif not in_order:
                with self._written.open("wb") as file:
                    file.writelines(dumped(self.at(start)) for start in starts)
        finally:
            self.close()
        if self._written.exists():
            os.replace(self._written, self.out)
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
    with TemporaryFile() as copy:
        copy.writelines(map(dumped, lines_of(file)))
        results = Results(plan, copy, str(file))
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
    known, plan = results.get(row.key), results.plan
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
