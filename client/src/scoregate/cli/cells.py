"""Cells of a table that are more than a text: options of a row, and lists of pictures and prompts."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from scoregate.cli.arguments import json_or_text

QUESTION_SET = "question_set"
Scalar = str | int | float | bool | None


def in_json(values: Mapping[str, Any], texts: Collection[str] = ()) -> dict[str, Any]:
    """Return the cells of a CSV row, with objects and lists in place of their JSON; *texts* stay texts."""
    return {name: cell if name in texts else opened(cell) for name, cell in values.items()}


def opened(cell: Any) -> Any:
    """Parse a text that is an object or a list in JSON; return any other cell unchanged."""
    if isinstance(cell, str) and cell.lstrip()[:1] in ("{", "["):
        return json_or_text(cell)
    return cell


def is_column(cell: Any) -> bool:
    """Return True for a cell that results keep: a text, a number, a truth value, or a list of these."""
    return isinstance(cell, Scalar) or (isinstance(cell, list) and all(isinstance(c, Scalar) for c in cell))


def listed(values: Mapping[str, Any], columns: Sequence[str]) -> list[Any]:
    """Return the cells of *columns* as one list; a cell may be a list itself.  Raises `ValueError`."""
    cells = [values.get(column) for column in columns]
    if missing := [column for column, cell in zip(columns, cells, strict=True) if empty(cell)]:
        raise ValueError(f"column {missing[0]} is missing")
    return [each for cell in cells for each in (cell if isinstance(cell, list) else [cell])]


def options_in(
    values: Mapping[str, Any],
    metrics: Sequence[str],
    asking: Sequence[str] = (),
    renamed: Mapping[str, str] | None = None,
    *,
    in_csv: bool = False,
    texts: Collection[str] = (),
) -> dict[str, dict[str, Any]]:
    """
    Return the options that a row's cells give, by metric.

    The column `options` has an object by metric, a column `METRIC` the options of one, and a column
    `METRIC.OPTION` one option.  The column `question_set` is that option of each metric of *asking*.

    Args:
        metrics: all others are ignored.
        renamed: further columns, by `METRIC.OPTION`.
        in_csv: a cell of one option is JSON, or else a text.
        texts: options that are always texts, by `METRIC.OPTION`.

    Raises:
        ValueError: a cell is not an object of options, or not JSON.
    """
    found: dict[str, dict[str, Any]] = {}
    for metric, cell in in_options(opened(values.get("options"))).items():
        if metric in metrics:
            found[metric] = of_metric(cell, f"column options, {metric}")
    for metric in metrics:
        cell = opened(values.get(metric))
        if isinstance(cell, Mapping) or in_braces(cell):
            found[metric] = {**found.get(metric, {}), **of_metric(cell, f"column {metric}")}
    dotted = {name: name for name in values if name.partition(".")[0] in metrics and "." in name}
    for name, column in {**dotted, **(renamed or {})}.items():
        metric, _, option = name.partition(".")
        if metric in metrics and not empty(cell := values.get(column)):
            of_it = option_of(cell, is_text=name in texts) if in_csv else cell
            found.setdefault(metric, {})[option] = of_it
    if not empty(cell := values.get(QUESTION_SET)):
        for metric in asking:
            found.setdefault(metric, {}).setdefault(QUESTION_SET, cell)
    check(found)
    return found


def option_of(cell: Any, *, is_text: bool) -> Any:
    """Return the value of an option in a cell of CSV: JSON, or else a text; always a text if it *is_text*."""
    value = json_or_text(cell) if isinstance(cell, str) else cell
    return cell if is_text and not isinstance(value, str) else value


def in_options(cell: Any) -> Mapping[str, Any]:
    """Return the content of the column `options`.  Raises `ValueError`."""
    if empty(cell):
        return {}
    if not isinstance(cell, Mapping):
        raise ValueError("column options is no object of options by metric")
    return cell


def of_metric(cell: Any, place: str) -> dict[str, Any]:
    """Return the options of one metric.  Raises `ValueError`, which begins with *place*."""
    if not isinstance(cell, Mapping):
        raise ValueError(f"{place} is no object of options")
    return {name: value for name, value in cell.items() if value is not None}


def check(options: Mapping[str, Any]) -> None:
    """Raise `ValueError` for options that a request cannot have."""
    try:
        json.dumps(options, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise ValueError(f"its options are no JSON ({exc})") from None


def in_braces(cell: Any) -> bool:
    """Return True for a text that begins as an object does."""
    return isinstance(cell, str) and cell.lstrip().startswith("{")


def empty(cell: Any) -> bool:
    """Return True for a cell without a value."""
    return cell is None or cell == "" or cell == []
