"""A line of a result of `scoregate batch`: one row of the data set, its scores and its errors."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

from scoregate.answers import is_number
from scoregate.data.columns import is_column
from scoregate.data.rows import dumped_options
from scoregate.notices import Notice
from scoregate.records import BadInput
from scoregate.store import Line as Line

Key = tuple[str | None, str | None, str]
FIELDS = {"row", "image", "prompt", "sha256", "scores", "errors"}
OBJECTS = ("scores", "errors", "models", "options", "own_options", "question_sets", "columns", "details")
LISTS = ("warnings", "lower_is_better", "own_metrics")
UNREADABLE = "unreadable_row"


def finite(columns: Mapping[str, Any]) -> Line:
    """Replace NaN and infinities by None, also in lists, since JSON has neither."""

    def one(cell: Any) -> Any:
        return None if isinstance(cell, float) and not isfinite(cell) else cell

    return {name: [*map(one, v)] if isinstance(v, list) else one(v) for name, v in columns.items()}


def is_unreadable(line: Line) -> bool:
    """Return True for the line of a row that was not sent."""
    return not line["scores"] and all(error["code"] == UNREADABLE for error in line["errors"].values())


def key(line: Line) -> Key:
    """Return the key of the line's row, as `Row.key`."""
    return line["image"], line["prompt"], dumped_options(line.get("own_options", {}))


def loaded(data: bytes, place: str) -> Line:
    """Return the line in *data*.  Raises `BadInput` if it is no result of `scoregate batch`."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        content = None
    return checked(content, place)


def checked(content: Any, place: str) -> Line:
    """Return *content* if it is a valid line.  Raises `BadInput`, which begins with *place*."""
    if not is_line(content):
        raise BadInput(f"{place} is no result of `scoregate batch`: name another file")
    known: Line = content
    if wrong := [metric for metric, score in known["scores"].items() if not is_number(score)]:
        raise BadInput(f"{place}: {wrong[0]} of row {known['row']} is no finite number")
    return known


def is_line(content: Any) -> bool:
    """Return True if *content* has the shape of a line in all fields that the commands use."""
    if not (isinstance(content, dict) and content.keys() >= FIELDS):
        return False
    if not all(isinstance(content.get(name, {}), dict) for name in OBJECTS):
        return False
    if not all(isinstance(content.get(name, []), list) for name in LISTS):
        return False
    return (
        type(content["row"]) is int
        and all(isinstance(content[name], str | None) for name in ("image", "prompt", "sha256"))
        and all(map(is_error, content["errors"].values()))
        and all(
            isinstance(text, str)
            for name in ("models", "question_sets")
            for text in content.get(name, {}).values()
        )
        and all(map(is_column, content.get("columns", {}).values()))
        and all(isinstance(name, str) for name in content.get("lower_is_better", []))
        and isinstance(content.get("orient"), str | None)
        and all(map(is_warning, content.get("warnings", [])))
    )


def is_warning(content: Any) -> bool:
    try:
        return bool(Notice.of_json(content))
    except (LookupError, TypeError, ValueError):
        return False


def is_error(content: Any) -> bool:
    return isinstance(content, dict) and all(
        isinstance(content.get(name), str) for name in ("code", "detail")
    )
