"""The table in Markdown, and the plot."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.gpu.results import Machine, Row

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


def plot(title: str, rows: Mapping[str, Sequence[Row]], file: Path) -> None:
    """
    Write a picture: a bar for each figure that has a share of a limit, and for each with a target.

    A bar is the share, or the value over its target; the line at 1 is the limit, or the target.
    """
    from matplotlib.figure import Figure  # a table needs no plot

    shown = [
        (f"{part}: {row.what}", size, row.red)
        for part, found in rows.items()
        for row in found
        if (size := bar(row)) is not None
    ][::-1]
    drawn = Figure(figsize=(10, 1.5 + 0.22 * len(shown)), layout="tight")
    axes = drawn.subplots()
    for place, (_, size, red) in enumerate(shown):
        axes.barh(place, size, color="tab:red" if red else "tab:green")
    axes.set_yticks(range(len(shown)), [name for name, _, _ in shown], fontsize=7)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(title=title, xlabel="share of the measured limit, or figure over target; red: missed")
    drawn.savefig(file, dpi=110)


def bar(row: Row) -> float | None:
    """Return the length of a row's bar; None if it has none."""
    if row.share is not None:
        return row.share
    bound = row.least or row.most
    return min(2.0, row.value / bound) if row.value is not None and bound else None
