"""Text for a terminal: nothing in it can steer a terminal, and columns stand straight."""

import unicodedata
from collections.abc import Iterable, Sequence

STEERING = {"Cc", "Cs", "Zl", "Zp"}  # controls, lone surrogates, separators of lines
TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # bidi
GAP = "  "


def shown(text: object) -> str:
    r"""Return *text* in one line; characters that would steer a terminal as escapes such as `\x1b`."""
    return "".join(
        ascii(char)[1:-1] if char in TURNING or unicodedata.category(char) in STEERING else char
        for char in str(text)
    )


def width(text: str) -> int:
    """Return the number of terminal columns of *text*."""
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], right: Iterable[str] = ()) -> str:
    """
    Return rows below their heads, in columns; a column without any cell is left out.

    Args:
        right: heads of the columns that stand at the right, as numbers do.
    """
    columns = zip(*([shown(cell) for cell in row] for row in [heads, *rows]), strict=True)
    kept = [column for column in columns if any(column[1:])]
    wide = [max(map(width, column)) for column in kept]
    to_the_right = [column[0] in set(right) for column in kept]
    lines = []
    for row in zip(*kept, strict=True):
        padded = (
            " " * (most - width(cell)) + cell if at_right else cell + " " * (most - width(cell))
            for cell, most, at_right in zip(row, wide, to_the_right, strict=True)
        )
        lines.append(GAP.join(padded).rstrip())
    return "\n".join(lines)


def number(value: float | None) -> str:
    """Format a score with four digits; a dash for None."""
    return "–" if value is None else f"{value:.4g}" if abs(value) >= 1000 else f"{value:.4f}"
