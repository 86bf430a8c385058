"""The content of a benchmark, facts and named tables, as text, Markdown, LaTeX or CSV."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scoregate.cli.evaluate.formats import laid_out
from scoregate.cli.evaluate.text import as_text, cell, is_table, with_ends
from scoregate.cli.exits import UsageFault
from scoregate.text import table

Content = Mapping[str, Any]  # single values, and lists of rows: the tables
TITLES = {"text": "{}\n{}", "markdown": "**{}**\n\n{}", "latex": "% {}\n{}", "csv": "{1}"}
PLAIN = "mean"  # a cell whose values, such as those of generators, are columns of their names alone

Head = tuple[str, str]  # a column, and the value's name if a cell has several


def printed(content: Content, form: str, only: str | None) -> str:
    """Return the facts and all tables as text, and in other forms the tables.  Raises `UsageFault`."""
    tables = {name: value for name, value in content.items() if isinstance(value, list) and is_table(value)}
    facts = {name: value for name, value in content.items() if name not in tables}
    if only is not None and only not in tables:
        raise UsageFault(f"there is no table {only}; there are {', '.join(tables)}")
    only = only or (next(iter(tables)) if form == "csv" else None)
    drawn = [
        TITLES[form].format(name, of_rows(rows, form))
        for name, rows in tables.items()
        if only in (None, name)
    ]
    return "\n\n".join([as_text(facts), *drawn] if form == "text" and not only else drawn)


def of_rows(rows: Sequence[Mapping[str, Any]], form: str) -> str:
    """Return one table; a cell with several values becomes a column for each of them."""
    lines = [dict(cells(row)) for row in rows]
    heads = list(dict.fromkeys(head for line in lines for head in line))
    body = [[line.get(head) for head in heads] for line in lines]
    if form != "text":
        return laid_out([name_of(head) for head in heads], body, form)
    names = [name_of(head) if head[0] == PLAIN else name_of(head).upper() for head in heads]
    columns = zip(names, zip(*body, strict=True), strict=True)
    right = [name for name, column in columns if all(isinstance(each, int | float | None) for each in column)]
    return table(names, [list(map(cell, line)) for line in body], right)


def name_of(head: Head) -> str:
    outer, inner = head
    return inner if outer == PLAIN else f"{outer} {inner}".strip().replace("_", " ")


def cells(row: Mapping[str, Any]) -> Iterator[tuple[Head, Any]]:
    for name, value in with_ends(row).items():
        yield from (
            (((name, each), value[each]) for each in value)
            if isinstance(value, Mapping)
            else [((name, ""), value)]
        )
