"""Existing results, without a service: read from a copy, so that the file does not change."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from tempfile import TemporaryDirectory

from scoregate.cli.cells import QUESTION_SET
from scoregate.cli.datasets import Dataset
from scoregate.cli.exits import UsageFault
from scoregate.cli.lines import Line, Plan, line, loaded, unreadable
from scoregate.cli.parquet import read_lines
from scoregate.cli.results import KINDS, Results
from scoregate.cli.rows import RELATED, Row, digest
from scoregate.images import check_regular

NOT_SCORED, CHANGED = "not_scored", "picture_changed"


@contextmanager
def held(
    dataset: Dataset, file: Path, metrics: Sequence[str] | None = None, *, any_models: bool = False
) -> Iterator[Results]:
    """
    Yield the results in *file* for the rows of *dataset*; a missing result is an error.

    Raises:
        UsageFault: the file holds something else, other *metrics*, or scores that are not comparable.
        OSError: the file cannot be read.
    """
    plan = plan_of(file)
    plan = replace(plan, metrics=metrics or plan.metrics, any_models=any_models)
    dataset = replace(dataset, metrics=plan.metrics, asking=pinned(file), texts=texts_of(file))
    with TemporaryDirectory() as folder, Results(Path(shutil.copy(file, folder)), plan, file) as results:
        for row in dataset:
            take(results, row)
        yield results


def plan_of(file: Path) -> Plan:
    """Return the plan of the run that wrote *file*, with the models of its first line with a score."""
    if file.suffix.lower() not in KINDS:
        raise UsageFault(f"{file}: the name of the results must end in {' or '.join(KINDS)}")
    first: Line = {}
    for each in lines_of(file):
        first = first or each
        if each["scores"]:
            first = each
            break
    if not first:
        raise UsageFault(f"{file}: there is no result")
    return Plan(
        [*first["scores"], *first["errors"]],
        first.get("models", {}),
        first.get("options", {}),
        lower=first.get("lower_is_better", ()),
        orient=first.get("orient"),
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
    """Yield the lines of *file*.  Raises `UsageFault` for an invalid one."""
    if file.suffix.lower() == ".parquet":
        yield from read_lines(file)
        return
    check_regular(file)
    with file.open("rb") as opened:
        for number, data in enumerate(opened, 1):
            yield loaded(data, f"{file}, line {number}")


def take(results: Results, row: Row) -> None:
    """Add the row's line to *results*; a picture that is no longer readable keeps its scores."""
    start = results.held.get(row.key)
    known = None if start is None or row.prompt is None else results.line(start)
    if row.fault:
        results.add(row, unreadable(results.plan, row, row.fault))
    elif known is None:
        results.add(row, without(results.plan, row, NOT_SCORED, "the results hold no line of this row"))
    elif (sha256 := known["sha256"]) and sha256 not in (digests(row) or {sha256}):
        results.add(row, without(results.plan, row, CHANGED, "the results are about another picture"))
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


def without(plan: Plan, row: Row, code: str, detail: str) -> Line:
    """Return a line with the same error under every metric."""
    error = {"code": code, "detail": detail}
    return line(plan, row, None, {}, dict.fromkeys(plan.metrics, error))
