"""Pieces of the page; every text of others goes through `safe`."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from scoregate.cli.sheet import safe
from scoregate.evaluation import BadColumn

__all__ = ["Missing", "note", "part", "region", "safe", "section", "table"]


class Missing(Exception):
    """Why a part of the page cannot be drawn; one line."""


def section(name: str, title: str, body: Callable[[], str]) -> str:
    """Return a section with its heading; if it is empty, it says why."""
    heading = f'<h2 id="{name}-title">{title}</h2>\n'
    return f'<section id="{name}" aria-labelledby="{name}-title">\n{heading}{part(body)}</section>\n'


def part(body: Callable[[], str], about: str = "", columns: Mapping[str, str | None] | None = None) -> str:
    """
    Return the content of *body*, or one line that says why it is missing.

    Args:
        about: what begins that line.
        columns: the names of the columns that *body* hands to a figure, by argument.
    """
    try:
        return body()
    except Missing as exc:
        why = str(exc)
    except BadColumn as exc:
        why = f"{(columns or {}).get(exc.role) or exc.role}: {exc.why}"
    return note(safe(f"{about}: {why}" if about else why))


def note(text: str) -> str:
    """Return a line in small print; *text* is HTML."""
    return f'<p class="quiet">{text}</p>\n'


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Return a table whose first column names its rows; all arguments are HTML."""
    head = "".join(f'<th scope="col">{each}</th>' if each else "<td></td>" for each in heads)
    body = "".join(
        f'<tr><th scope="row">{cells[0]}</th>{"".join(f"<td>{cell}</td>" for cell in cells[1:])}</tr>\n'
        for cells in rows
    )
    drawn = (
        f'<table class="{kind}">\n<caption>{caption}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"
    )
    return region(caption, drawn)


def region(label: str, body: str) -> str:
    """Return *body* in a box that scrolls sideways, also with the keyboard."""
    return f'<div class="wide" role="group" tabindex="0" aria-label="{label}">\n{body}</div>\n'
