"""The order in which lines of text are read."""

from collections.abc import Iterable

from models.core.outcomes import Line


def in_reading_order(lines: Iterable[Line]) -> tuple[Line, ...]:
    """
    From top to bottom, and from left to right in each row.

    A line belongs to the row above it if its middle is not below the bottom of the row's first line.
    """
    rows: list[list[Line]] = []
    bottom = float("-inf")
    for line in sorted(lines, key=middle):
        if middle(line) > bottom:
            rows.append([])
            bottom = max(y for _, y in line.box)
        rows[-1].append(line)
    return tuple(line for row in rows for line in sorted(row, key=left))


def middle(line: Line) -> float:
    """How far its middle is from the top."""
    return sum(y for _, y in line.box) / len(line.box)


def left(line: Line) -> float:
    """Where it begins."""
    return min(x for x, _ in line.box)
