"""Figures for people: single values in one table, and one table for every list of things."""

from collections.abc import Mapping
from typing import Any

from scoregate.text import number, table

NONE = "–"
MOST = 20  # names that are shown in a line


def as_text(content: Mapping[str, Any]) -> str:
    """Return every entry of *content* that holds something; names of lists stand above their tables."""
    single = {name: cell(value) for name, value in content.items() if not is_table(value)}
    parts = [table(["FIGURE", "VALUE"], list(single.items()), right=["VALUE"])]
    for name, value in content.items():
        if is_table(value) and value:
            parts.append(f"{name}\n{of_rows(rows(value))}")
    return "\n\n".join(parts)


def is_table(value: Any) -> bool:
    """Return True if *value* is rows: a list of objects, or an object of them or of values."""
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)
    )


def rows(value: Any) -> list[dict[str, Any]]:
    """Return a row for each entry; that of an object begins with its name."""
    if isinstance(value, list):
        return [with_ends(each) for each in value]
    return [
        {"name": name} | (with_ends(each) if isinstance(each, Mapping) else {"value": each})
        for name, each in value.items()
    ]


def with_ends(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the ends of its intervals in place of these."""
    found = ends(row)
    parts = (found if found and name == "interval" else {name: each} for name, each in row.items())
    return {name: each for part in parts for name, each in part.items()}


def ends(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the ends of the interval of a row, or of each of its figures; alpha's `interval` is a figure."""
    found = row.get("interval")
    of_each = {"": found} if isinstance(found, tuple) else found if isinstance(found, Mapping) else {}
    return {
        f"{name} {end}".strip(): value
        for name, both in of_each.items()
        for end, value in zip(("low", "high"), both, strict=True)
    }


def of_rows(each: list[dict[str, Any]]) -> str:
    names = [name for name in dict.fromkeys(name for row in each for name in row)]
    heads = [name.replace("_", " ").upper() for name in names]
    numeric = [
        head
        for head, name in zip(heads, names, strict=True)
        if all(isinstance(row.get(name), int | float | None) for row in each)
    ]
    return table(heads, [[cell(row.get(name)) for name in names] for row in each], right=numeric)


def cell(value: Any) -> str:
    """Return a value in a few characters."""
    if value is None:
        return NONE
    if isinstance(value, float):
        digits = ".3g" if 0 < abs(value) < 0.001 else ".8g" if abs(value) >= 1000 else ""
        return format(value, digits) if digits else number(value)
    if isinstance(value, list) and value and isinstance(value[0], list):
        return " > ".join(" = ".join(map(cell, tier)) for tier in value)
    if isinstance(value, list | tuple):
        return ", ".join(map(cell, value)) if len(value) <= MOST else f"{len(value)}: see --json"
    return str(value)
