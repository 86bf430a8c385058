"""Result of a figure of `scoregate evaluate`, and arguments that several figures share."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scoregate.records import number

if TYPE_CHECKING:
    from scoregate.evaluation import Scale, Table
    from scoregate.evaluation.bootstrap import Drawn


@dataclass(frozen=True)
class Outcome:
    """
    A figure.

    Attributes:
        content: of its JSON.
        draw: draws it on Matplotlib's axes.
        size: how many things it is of, and the word for one; None for rows.
    """

    content: dict[str, Any]
    draw: Callable[[Any], None]
    drawn: "Drawn | None" = None
    size: tuple[int, str] | None = None


def outcome(
    table: "Table",
    draw: Callable[[Any], None],
    *figures: Any,
    drawn: "Drawn | None" = None,
    cluster: str = "row",
    size: tuple[int, str] | None = None,
) -> Outcome:
    """
    Merge dataclasses and objects into one, with the numbers of dropped rows and of what was drawn.

    Args:
        cluster: what was drawn.
    """
    content: dict[str, Any] = {}
    for each in figures:
        content |= each if isinstance(each, dict) else asdict(each)
    more: dict[str, Any] = {"unquoted": table.unquoted, "dropped": content.get("dropped", table.dropped)}
    if drawn:
        from scoregate.evaluation.bootstrap import interval

        more |= {"cluster": cluster, "clusters": drawn.sample.units}
        content |= {"interval": interval(drawn)} if drawn.values else {}
        if cluster != "row":
            size = drawn.sample.units, cluster if cluster in ("item", "prompt") else "cluster"
    return Outcome(content | more | ({"lower_is_better": True} if table.turned else {}), draw, drawn, size)


def add_lower(parser: argparse.ArgumentParser) -> None:
    """Declare the direction of the scores."""
    what = "of these scores; a result of `scoregate batch` says it by itself"
    parser.add_argument("--lower-is-better", action="store_true", help=what)


def add_table(parser: argparse.ArgumentParser, flag: str = "--scores") -> None:
    """Declare the file."""
    what = ".csv, .jsonl or .parquet, also .gz, or a result of `scoregate batch`"
    parser.add_argument(flag, dest="table", type=Path, required=True, metavar="FILE", help=what)


def add_columns(parser: argparse.ArgumentParser, columns: Mapping[str, str]) -> None:
    """Declare required columns: a description by name."""
    for name, what in columns.items():
        several = {"action": "append"} if name == "metric" else {}
        more = "; several are compared on the same rows" if several else ""
        parser.add_argument(f"--{name}", required=True, metavar="COLUMN", help=what + more, **several)


def add_scale(parser: argparse.ArgumentParser) -> None:
    """Declare the ratings' scale."""
    parser.add_argument("--scale", type=scale, metavar="A:B", help="ratings outside are counted and left out")


def add_ratings(parser: argparse.ArgumentParser) -> None:
    """Declare a table of ratings with one row for each."""
    add_table(parser, "--ratings")
    columns = {"unit": "what was rated", "rater": "who rated it", "rating": "the rating, a number"}
    add_columns(parser, columns)
    add_scale(parser)


def ratings_of(arguments: argparse.Namespace, table: "Table", *more: list[str | None]) -> list[Any]:
    """Return the columns unit, rater, rating and *more* of its complete rows."""
    texts = table.texts(arguments.unit), table.texts(arguments.rater)
    return table.complete(*texts, table.numbers(arguments.rating), *more)


def scale(text: str) -> tuple[float, float]:
    """Return two numbers, the lower one first."""
    low, colon, high = text.partition(":")
    try:
        ends = number(low), number(high)
    except ValueError:
        ends = 0.0, 0.0
    if not (colon and isfinite(ends[0]) and isfinite(ends[1]) and ends[0] < ends[1]):
        raise argparse.ArgumentTypeError("a scale is two numbers, such as 1:5")
    return ends


def scale_of(arguments: argparse.Namespace) -> "Scale | None":
    from scoregate.evaluation import Scale

    return Scale(*arguments.scale) if arguments.scale else None


def share(text: str) -> float:
    """Return a number above 0, up to 1."""
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError("a number above 0, up to 1")
    return value


def count(text: str) -> int:
    """Return a whole number from 0."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("a whole number from 0")
    return value


def label(column: str) -> str:
    """Return a column's name as Matplotlib shows it: a dollar sign would begin a formula."""
    return column.replace("$", r"\$")
