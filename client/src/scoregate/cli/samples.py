"""Scores and labels of a file, and the rows without."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from scoregate.cli.exits import UsageFault
from scoregate.records import Record, number, records

LABELS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
NAMED = 5  # rows without a score that are named


@dataclass
class Samples:
    """
    The scores of a file, with their labels if a column is given.

    Attributes:
        lower: True if lower scores are better.
    """

    metric: str
    rows: int = 0
    scores: list[float] = field(default_factory=list)
    labels: list[bool] = field(default_factory=list)
    left_out: dict[str, list[int]] = field(default_factory=dict)  # the rows, by what they lack
    lower: bool = False

    def leave_out(self, why: str, row: int) -> None:
        self.left_out.setdefault(why, []).append(row)

    def of(self, label: bool) -> list[float]:
        """Return the scores with *label*; empty without a column of labels."""
        return [score for score, each in zip(self.scores, self.labels, strict=False) if each is label]

    def worth(self, scores: Iterable[float]) -> list[float]:
        """Return the scores in ascending order, negated if lower ones are better."""
        return sorted(turned(score, self.lower) for score in scores)


def turned(score: float, lower: bool) -> float:
    """Return the score, negated if *lower* ones are better."""
    return 0.0 - score if lower else score


def read_samples(path: Path, metric: str | None, label: str | None) -> Samples:
    """
    Return the scores of *metric* in *path*, a result of `scoregate batch` or any file with such a column.

    Args:
        metric: None takes the one metric that the first row has, or its column `score`.

    Raises:
        UsageFault: there is no such column, or a cell is not valid.
    """
    samples = Samples(metric or "")
    for record in records(path):
        samples.rows += 1
        if record.fault:
            samples.leave_out("cannot be read", record.number)
            continue
        samples.metric = samples.metric or only_metric(record, path)
        add(samples, record, label)
    if not samples.scores:
        wanted = f"{samples.metric or 'any column'}" + (f" and a label in {label}" if label else "")
        raise UsageFault(f"{path}: no row has a score in {wanted}")
    return samples


def only_metric(record: Record, path: Path) -> str:
    """Return the default metric."""
    scores = record.values.get("scores")
    names = list(scores) if isinstance(scores, Mapping) else []
    if isinstance(scores, Mapping) and isinstance(errors := record.values.get("errors"), Mapping):
        names += [name for name in errors if name not in names]
    if not names and "score" in record.values:
        names = ["score"]
    if len(names) == 1:
        return str(names[0])
    offered = ", ".join(map(str, names or record.values))
    raise UsageFault(f"{path}: say which scores are meant with --metric; there are {offered}")


def add(samples: Samples, record: Record, label: str | None) -> None:
    """Add a row's score and label, or count the row as left out."""
    nested = record.values.get("scores")
    values = nested if isinstance(nested, Mapping) else record.values
    score = as_score(values.get(samples.metric), record, samples.metric)
    if score is None:
        return samples.leave_out("no score", record.number)
    if not isfinite(score):
        return samples.leave_out("not a finite number", record.number)
    if label is not None:
        known = as_label(labelled(record.values, label), record, label)
        if known is None:
            return samples.leave_out("no label", record.number)
        samples.labels.append(known)
    samples.scores.append(score)
    return None


def as_score(cell: Any, record: Record, column: str) -> float | None:
    """Return the number in a cell; None if it is empty."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    try:
        return number(cell)
    except ValueError as exc:
        raise UsageFault(f"row {record.number}, column {column}: {exc}") from exc


def labelled(values: Mapping[str, Any], label: str) -> Any:
    """Return a label's cell; a result of `scoregate batch` has the data set's columns in `columns`."""
    columns = values.get("columns")
    return columns.get(label) if label not in values and isinstance(columns, Mapping) else values.get(label)


def as_label(cell: Any, record: Record, column: str) -> bool | None:
    """Return True for 1 and true, False for 0 and false, None for an empty cell."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    text = str(cell).strip().lower()
    if text in LABELS:
        return LABELS[text]
    raise UsageFault(
        f"row {record.number}, column {column}: {cell!r} is not a label, which is 0, 1, true or false"
    )


def noted(samples: Samples) -> list[str]:
    """Return one line about each kind of row that was left out, with the first of them."""
    return [
        f"{len(rows)} of {samples.rows} rows left out, {why}: row{'s' * (len(rows) > 1)} "
        + ", ".join(map(str, rows[:NAMED]))
        + ", …" * (len(rows) > NAMED)
        for why, rows in samples.left_out.items()
    ]
