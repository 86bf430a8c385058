"""The table in Markdown, and the plot."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from loadtest.gpu.results import Machine, Row

HEAD = ("part", "measured", "figure", "share of the limit", "target", "note")


def table(machine: Machine, rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield the lines: the machine, then a row for each figure, those that miss a target or failed bold."""
    yield " · ".join(f"{name} {value}" for name, value in machine.items())
    yield ""
    yield f"| {' | '.join(HEAD)} |"
    yield "|---" * len(HEAD) + "|"
    for part, found in rows.items():
        for row in found:
            cells = (part, row.what, figure(row), share(row), target(row), row.note)
            yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def figure(row: Row) -> str:
    """Format the value with its unit."""
    if row.value is None:
        return "**failed**" if row.failed else ""
    shown = f"{number(row.value)} {row.unit}".strip()
    return f"**{shown}**" if row.red and row.share is None else shown


def share(row: Row) -> str:
    """Format the share of the limit."""
    if row.share is None:
        return ""
    return f"**{row.share:.3g}**" if row.red else f"{row.share:.3g}"


def target(row: Row) -> str:
    """Format the target, and whether it is missed."""
    return f"{row.target} **missed**" if row.met is False else row.target


def number(value: float) -> str:
    """Format *value* with four digits, and thousands in groups."""
    if value and not 1e-3 <= abs(value) < 1e9:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def line(row: Row) -> str:
    """Format a row for a terminal."""
    shown = [row.what, figure(row), share(row), target(row), row.note]
    return " · ".join(filter(None, shown)).replace("**", "")


LEFT, ONE, STEP = 460, 220, 16  # pixels: of the names, of a bar of length 1, of a line


def plot(title: str, rows: Mapping[str, Sequence[Row]], file: Path) -> None:
    """
    Write a picture in SVG: a bar for each figure that has a share of a limit, and for each with a target.

    A bar is the share, or the value over its target; the line at 1 is the limit, or the target.
    """
    shown = [
        (f"{part}: {row.what}", size, "#c33" if row.red else "#393")
        for part, found in rows.items()
        for row in found
        if (size := bar(row)) is not None
    ]
    height, at_one = STEP * (len(shown) + 3), LEFT + ONE
    title = f"{title}: share of the limit, or figure over target; red: missed"
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + 2 * ONE + 60}" height="{height}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="100%" height="{height}" fill="white"/>',
        f'<text x="8" y="{STEP}">{escape(title)}</text>',
    ]
    for number, (name, size, colour) in enumerate(shown, 2):
        y, width = STEP * number, ONE * size
        drawn += [
            f'<text x="{LEFT - 6}" y="{y}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{LEFT}" y="{y - 9}" width="{width:.1f}" height="11" fill="{colour}"/>',
            f'<text x="{LEFT + width + 4:.1f}" y="{y}">{size:.2g}</text>',
        ]
    drawn.append(f'<line x1="{at_one}" x2="{at_one}" y1="{STEP + 6}" y2="{height}" stroke="black"/></svg>')
    file.write_text("\n".join(drawn) + "\n", "utf-8")


def bar(row: Row) -> float | None:
    """Return the length of a row's bar; None if it has none."""
    if row.share is not None:
        return row.share
    bound = row.least or row.most
    return min(2.0, row.value / bound) if row.value is not None and bound else None
