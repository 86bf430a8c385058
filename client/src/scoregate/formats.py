"""Figures and tables as text, Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scoregate.errors import InputError
from scoregate.text import number, shown, table

NO_VALUE = "–"
MAX_SHOWN_NAMES = 20  # names that are shown in a line

FORMATS = ("markdown", "latex", "csv")
LATEX_ESCAPES = str.maketrans(
    {char: f"\\{char}" for char in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)
Content = Mapping[str, Any]  # single values, and lists of rows: the tables
TITLES = {"text": "{}\n{}", "markdown": "**{}**\n\n{}", "latex": "% {}\n{}", "csv": "{1}"}
MEAN_CELL = "mean"  # a cell whose values, such as those of generators, are columns of their names alone


def as_text(content: Mapping[str, Any]) -> str:
    """Return every entry of *content* that holds something; names of lists stand above their tables."""
    single = {name: cell(value) for name, value in content.items() if not is_table(value)}
    parts = [table(["FIGURE", "VALUE"], list(single.items()), right=["VALUE"])]
    for name, value in content.items():
        if is_table(value) and value:
            named = (
                value
                if isinstance(value, list)
                else [
                    {"name": each, **(of if isinstance(of, Mapping) else {"value": of})}
                    for each, of in value.items()
                ]
            )
            parts.append(f"{name}\n{spread(named, 'text')}")
    return "\n\n".join(parts)


def is_table(value: Any) -> bool:
    """Return True if *value* is rows: a list of objects, or an object of them or of values."""
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)
    )


def with_ends(row: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return a row with the ends of its intervals in place of these.

    An interval is of the row, or of each of its figures; alpha's `interval` is a figure.
    """
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name == "interval" and isinstance(value, tuple | Mapping):
            for figure, (low, high) in ({"": value} if isinstance(value, tuple) else value).items():
                found |= {f"{figure} low".strip(): low, f"{figure} high".strip(): high}
        else:
            found[name] = value
    return found


def cell(value: Any) -> str:
    """Return a value in a few characters."""
    if value is None:
        return NO_VALUE
    if isinstance(value, float):
        digits = ".3g" if 0 < abs(value) < 0.001 else ".8g" if abs(value) >= 1000 else ""
        return format(value, digits) if digits else number(value)
    if isinstance(value, list) and value and isinstance(value[0], list):
        return " > ".join(" = ".join(map(cell, tier)) for tier in value)
    if isinstance(value, list | tuple):
        return ", ".join(map(cell, value)) if len(value) <= MAX_SHOWN_NAMES else f"{len(value)}: see --json"
    return str(value)


def rendered(content: Mapping[str, Any], form: str) -> str:
    """
    Return the figures, with a row for each metric, and for each value of the column `--by`.

    The differences of metrics are a second table, except in CSV, where a file is one table.
    """
    tables = [tabular(content), between(content)]
    return "\n\n".join(laid_out(*each, form) for each in tables[: 1 if form == "csv" else 2] if each[1])


def laid_out(heads: Sequence[str], rows: Sequence[Sequence[Any]], form: str) -> str:
    """Return a table in a form of `FORMATS`, or as text."""
    if form == "csv":
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows([heads, *rows])
        return file.getvalue().rstrip("\n")
    texts = [[shown(cell(each)) for each in row] for row in (heads, *rows)]
    return {"text": text, "markdown": markdown, "latex": latex}[form](texts)


def tabular(content: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Return the heads and cells; figures that are no single value are left out."""
    lines: list[dict[str, Any]] = []
    for value, part in {"all": content, **content.get("by", {})}.items():
        for metric, figures in part.get("metrics", {"": part}).items():
            name = {"by": value} if "by" in content else {}
            name |= {"metric": metric} if metric else {}
            name |= figures.get("mean", {})
            single = {key: each for key, each in figures.items() if not isinstance(each, Mapping | list)}
            ends = with_ends({key: each for key, each in figures.items() if key == "interval"})
            of_all = {key: part[key] for key in ("caution", "seed") if key in part}
            lines.append(name | single | ends | of_all)
    return columns(lines)


def between(content: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Return the heads and cells of the differences of metrics, of all rows and of each value of `--by`."""
    lines: list[dict[str, Any]] = []
    for value, part in {"all": content, **content.get("by", {})}.items():
        for each in part.get("differences", ()):
            name = {"by": value} if "by" in content else {}
            lines.append(name | with_ends(each))
    return columns(lines)


def columns(lines: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Return the heads of all lines in order, and their cells; None where a line has none."""
    heads = list(dict.fromkeys(head for line in lines for head in line))
    return heads, [[line.get(head) for head in heads] for line in lines]


def text(rows: Sequence[Sequence[str]]) -> str:
    return table([head.upper() for head in rows[0]], rows[1:])


def markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(each.replace("|", r"\|") for each in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def latex(rows: Sequence[Sequence[str]]) -> str:
    head, *body = [" & ".join(each.translate(LATEX_ESCAPES) for each in row) + r" \\" for row in rows]
    columns = "l" + "r" * (len(rows[0]) - 1)
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return "\n".join([begin, r"\hline", head, r"\hline", *body, r"\hline", end])


def printed(content: Content, form: str, only: str | None) -> str:
    """Return the facts and all tables as text, and in other forms the tables.  Raises `InputError`."""
    lists = {name: value for name, value in content.items() if isinstance(value, list)}
    tables = {name: rows for name, rows in lists.items() if rows and isinstance(rows[0], Mapping)}
    facts = {name: value for name, value in content.items() if name not in tables}
    if only is not None and only not in tables:
        raise InputError(f"there is no table {only}; there are {', '.join(tables)}")
    only = only or (next(iter(tables)) if form == "csv" else None)
    chosen = {name: rows for name, rows in tables.items() if only in (None, name)}
    texts = [TITLES[form].format(name, spread(rows, form)) for name, rows in chosen.items()]
    if form != "text" or only:
        return "\n\n".join(texts)
    values = [(name, cell(value)) for name, value in facts.items()]
    return "\n\n".join([table(["FIGURE", "VALUE"], values, right=["VALUE"]), *texts])


def spread(rows: Sequence[Mapping[str, Any]], form: str) -> str:
    """Return one table, of the columns of `spread_columns`."""
    heads, body = spread_columns(rows, str.upper if form == "text" else str)
    if form != "text":
        return laid_out(heads, body, form)
    cells = zip(heads, zip(*body, strict=True), strict=True)
    right = [head for head, column in cells if all(isinstance(each, int | float | None) for each in column)]
    return table(heads, [list(map(cell, line)) for line in body], right)


def spread_columns(
    rows: Sequence[Mapping[str, Any]], upper: Callable[[str], str] = str
) -> tuple[list[str], list[list[Any]]]:
    """Return the heads and cells; a cell with several values becomes a column for each of them."""
    lines: list[dict[str, Any]] = []
    for row in rows:
        line: dict[str, Any] = {}
        for name, value in with_ends(row).items():
            head = upper(name.replace("_", " "))
            if not isinstance(value, Mapping):
                line[head] = value
            elif name == MEAN_CELL:
                line |= value
            else:
                line |= {f"{head} {upper(each.replace('_', ' '))}": one for each, one in value.items()}
        lines.append(line)
    return columns(lines)
