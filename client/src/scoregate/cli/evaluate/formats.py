"""Figures as one table, with a row for each metric and value: text, Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from scoregate.cli.evaluate.text import cell, ends, with_ends
from scoregate.text import shown, table

FORMATS = ("markdown", "latex", "csv")
ESCAPED = str.maketrans(
    {char: f"\\{char}" for char in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


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
            of_all = {key: part[key] for key in ("caution", "seed") if key in part}
            lines.append(name | single | ends(figures) | of_all)
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
    head, *body = [" & ".join(each.translate(ESCAPED) for each in row) + r" \\" for row in rows]
    columns = "l" + "r" * (len(rows[0]) - 1)
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return "\n".join([begin, r"\hline", head, r"\hline", *body, r"\hline", end])
