"""Tables of a benchmark as HTML, as `bench NAME --json` prints them."""

from collections.abc import Mapping, Sequence
from typing import Any

from scoregate.formats import cell, is_table, spread_columns
from scoregate.report.gallery import GALLERY
from scoregate.report.html import bad, in_sections, safe, table

CAUTION = "caution"  # the row of a generator has it; it stands below the table
Tables = Mapping[str, Any]


def benchmark_page(tables: Tables) -> str:
    """Return the tables of one benchmark as HTML; they are what `bench NAME --json` prints."""
    name, parts = str(tables["benchmark"]), "".join(parts_of(tables))
    return in_sections(f"Benchmark {name}", "", {"tables": (safe(name), parts)}, GALLERY)


def parts_of(tables: Tables) -> list[str]:
    """Return the tables of a benchmark as HTML, with the cautions below the first one."""
    first, *others = (drawn(name, without_caution(rows)) for name, rows in of_rows(tables).items())
    return [first, *(bad(each) for each in cautions_of(tables)), *others]


def drawn(caption: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a table of HTML."""
    heads, body = spread_columns(rows)
    return table(safe(caption), [*map(safe, heads)], [[safe(cell(each)) for each in row] for row in body])


def of_rows(tables: Tables) -> dict[str, list[Mapping[str, Any]]]:
    """Return the lists of rows among the tables of a benchmark."""
    return {name: rows for name, rows in tables.items() if isinstance(rows, list) and is_table(rows)}


def without_caution(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: each for name, each in row.items() if name != CAUTION} for row in rows]


def cautions_of(tables: Tables) -> list[str]:
    """Return the cautions of each generator."""
    return [f"{row['generator']}: {row[CAUTION]}" for row in tables.get("generators", ()) if row.get(CAUTION)]
