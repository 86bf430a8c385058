"""Parts of a report that may be missing, with the reason in their place, and plots."""

from collections.abc import Callable, Mapping, Sequence

from scoregate.errors import ColumnError
from scoregate.report.html import note, safe

MAX_AXIS_CHARACTERS = 30  # characters of a name at an axis


class MissingPartError(Exception):
    """Why a part of the page cannot be drawn; one line."""


def part(body: Callable[[], str], about: str = "", columns: Mapping[str, str | None] | None = None) -> str:
    """
    Return the content of *body*, or one line that says why it is missing.

    Args:
        about: what begins that line.
        columns: the names of the columns that *body* hands to a figure, by argument.
    """
    try:
        return body()
    except MissingPartError as exc:
        why = str(exc)
    except ColumnError as exc:
        why = f"{(columns or {}).get(exc.argument) or exc.argument}: {exc.why}"
    return note(safe(f"{about}: {why}" if about else why))


WIDE, HIGH = 340, 240
LEFT, BELOW, GAP = 52, 36, 10


def scatter(points: Sequence[tuple[float, float]], across: str, up: str) -> str:
    """Return an SVG of points, with the names and ends of both axes."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    x, y = axis(xs, LEFT + GAP, WIDE - 2 * GAP), axis(ys, HIGH - BELOW - GAP, GAP)
    circles = "".join(f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3"/>' for a, b in points)
    foot = HIGH - BELOW
    ends = [text(x(end), foot + 14, f"{end:.3g}") for end in (min(xs), max(xs))]
    ends += [text(LEFT - 5, y(end) + 4, f"{end:.3g}", "end") for end in (min(ys), max(ys))]
    middle = (HIGH - BELOW) / 2
    return (
        f'<svg class="scatter" viewBox="0 0 {WIDE} {HIGH}" role="img" '
        f'aria-label="{safe(up)} against {safe(across)}, {len(points)} points">'
        f'<path d="M{LEFT} 0V{foot}H{WIDE}"/>{circles}{"".join(ends)}'
        f"{text((LEFT + WIDE) / 2, HIGH - 4, short(across))}"
        f'<g transform="translate(12 {middle}) rotate(-90)">{text(0, 0, short(up))}</g></svg>\n'
    )


def axis(values: Sequence[float], first: float, last: float) -> Callable[[float], float]:
    """Return the position of a value, from *first* for the smallest to *last* for the largest."""
    low, high = min(values), max(values)
    return lambda value: first + (value - low) / ((high - low) or 1) * (last - first)


def text(x: float, y: float, said: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{safe(said)}</text>'


def short(name: str) -> str:
    """Truncate a name."""
    return name if len(name) <= MAX_AXIS_CHARACTERS else f"{name[: MAX_AXIS_CHARACTERS - 1]}…"
