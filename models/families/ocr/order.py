"""Reading order of lines of text."""

from collections.abc import Iterable

from models.core.outcomes import Line


def in_reading_order(lines: Iterable[Line]) -> tuple[Line, ...]:
    """
    Sort lines from top to bottom, and from left to right in each row.

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
    """Return the vertical distance of a line's middle from the top."""
    return sum(y for _, y in line.box) / len(line.box)


def left(line: Line) -> float:
    """Return the left end of a line."""
    return min(x for x, _ in line.box)
