"""Means of groups with their intervals, as a table with a bar in each row."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from scoregate.report.html import note, safe, table
from scoregate.report.intervals import Interval, interval
from scoregate.report.rows import EMPTY, Row
from scoregate.text import number

MOST = 60  # bars of a table

Domain = tuple[float, float]


@dataclass(frozen=True)
class Bar:
    """A group's mean; *missing* of its pictures have no value."""

    name: str
    of: Interval | None
    missing: int


def grouped(
    rows: Iterable[Row], name: Callable[[Row], str | Sequence[str] | None]
) -> Iterator[tuple[str, list[Row]]]:
    """Yield rows by what a column says of them, in the order of the names; a row may have several."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        names = name(row) or EMPTY
        for each in [names] if isinstance(names, str) else names:
            found.setdefault(each, []).append(row)
    yield from sorted(found.items())


def bar(name: str, rows: Sequence[Row], value: Callable[[Row], float | None]) -> Bar:
    """Return the mean of those rows that have a value."""
    found = [(score, row.item or row.prompt) for row in rows if (score := value(row)) is not None]
    of = interval([score for score, _ in found], [item for _, item in found]) if found else None
    return Bar(name, of, len(rows) - len(found))


def bars(title: str, head: str, found: Sequence[Bar], missing: str = "") -> str:
    """
    Return the table; only the largest groups if there are too many.

    Args:
        title: HTML.
        missing: the head of a column that counts rows without a value.
    """
    largest = {each.name for each in sorted(found, key=lambda each: -size(each))[:MOST]}
    domain = domain_of(found)
    cells = [
        [
            f"<div><span>{safe(each.name)}</span>{drawn(each.of, domain) if each.of else ''}</div>",
            number(each.of.mean if each.of else None),
            span(each.of),
            str(size(each)),
            *([str(each.missing)] if missing else []),
        ]
        for each in found
        if each.name in largest
    ]
    heads = [safe(head), "mean", "95 % interval", "n", *([missing] if missing else [])]
    left = len(found) - len(largest)
    return table(title, heads, cells, "bars") + (
        note(f"{left} smaller groups are not shown.") if left else ""
    )


def size(bar: Bar) -> int:
    return bar.of.n if bar.of else 0


def span(of: Interval | None) -> str:
    return "–" if of is None or of.low is None else f"{number(of.low)} to {number(of.high)}"


def domain_of(found: Iterable[Bar]) -> Domain:
    """Return 0 to 1 if all values are within, else their range with 0."""
    ends = [0.0]
    for each in found:
        if each.of:
            ends += [end for end in (each.of.mean, each.of.low, each.of.high) if end is not None]
    low, high = min(ends), max(ends)
    return (low, 1.0) if low == 0 and high <= 1 else (low, high)


def drawn(of: Interval, domain: Domain) -> str:
    """Return a bar from 0 to the mean, a line over the interval, and the numbers."""
    low, high = domain

    def x(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    zero, mean = x(0), x(of.mean)
    line = ""
    if of.low is not None and of.high is not None:
        a, b = x(of.low), x(of.high)
        line = f'<path d="M{a} 5H{b}M{a} 2V8M{b} 2V8"/>'
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="track" width="100" height="10"/><rect class="fill" x="{min(zero, mean)}" '
        f'width="{round(abs(mean - zero), 2)}" height="10"/>{line}</svg>'
    )
