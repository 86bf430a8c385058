"""Figures by the values of a column, and of several metrics on the same rows."""

import argparse
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.intervals import caution
from scoregate.cli.evaluate.outcome import Outcome

if TYPE_CHECKING:
    from scoregate.evaluation import Table

Evaluated = Callable[[argparse.Namespace, "Table"], Outcome]


def sliced(evaluated: Evaluated, arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return the figures of all rows, and by the values of the column `--by`."""
    whole = of_metrics(evaluated, arguments, table)
    if getattr(arguments, "bootstrap", 0):
        whole.content["seed"] = arguments.seed
    whole.content.update(few(len(table.records), whole))
    if arguments.by is None:
        return whole
    from scoregate.evaluation import BadInput

    tags = table.each(arguments.by, values)
    by: dict[str, Any] = {}
    for value in sorted({value for each in tags for value in each}):
        records = [row for row, each in zip(table.records, tags, strict=True) if value in each]
        try:
            part = of_metrics(evaluated, arguments, replace(table, records=records))
        except BadInput as exc:  # for example, all ratings are the same
            part = Outcome({"error": str(exc)}, whole.draw)
        by[value] = {"rows": len(records)} | part.content | few(len(records), part)
    more = {"by": by, "untagged": sum(not each for each in tags)}
    return Outcome({"rows": len(table.records)} | whole.content | more, whole.draw)


def of_metrics(evaluated: Evaluated, arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return the figures of a metric, or of several on the rows that have all, and their differences."""
    metrics = getattr(arguments, "metric", None)
    if metrics is None:
        return evaluated(arguments, table)
    from scoregate.evaluation.bootstrap import differences

    metrics = list(dict.fromkeys(metrics))
    if len(metrics) == 1:
        return evaluated(with_metric(arguments, metrics[0]), table)
    columns = [table.numbers(metric) for metric in metrics]
    records = [
        row
        for row, cells in zip(table.records, zip(*columns, strict=True), strict=True)
        if not any(cell != cell for cell in cells)
    ]
    whole = {row.number for row in records}
    others = [row for row in table.records if row.number not in whole]
    found = {
        metric: evaluated(
            with_metric(arguments, metric), replace(table, records=records, incomplete=others, turned=False)
        )
        for metric in metrics
    }
    apart = differences({name: (each.content, each.drawn) for name, each in found.items() if each.drawn})
    content: dict[str, Any] = {"metrics": {name: each.content for name, each in found.items()}}
    content |= {"differences": list(map(asdict, apart)), "incomplete": len(table.records) - len(records)}
    return Outcome(content, found[metrics[0]].draw, size=found[metrics[0]].size)


def with_metric(arguments: argparse.Namespace, metric: str) -> argparse.Namespace:
    return argparse.Namespace(**vars(arguments) | {"metric": metric})


def few(rows: int, found: Outcome) -> dict[str, str]:
    """Return the caution about figures of few things, by default those of the *rows* that are in them."""
    content = found.content
    figures = next(iter(content.get("metrics", {"": content}).values()))
    used = int(rows - content.get("incomplete", 0) - figures.get("dropped", 0))
    return caution(*(found.size or (used, "row")))


def values(cell: Any) -> list[str]:
    """Return the values of a cell: those of a list, also of one written as JSON; none if it is empty."""
    from scoregate.evaluation.tables import text

    if isinstance(cell, str) and cell.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):  # a text that begins like a list
            cell = json.loads(cell)
    cells = cell if isinstance(cell, list | tuple) else [cell]
    return list(dict.fromkeys(found for each in cells if (found := text(each)) is not None))
