"""Mean scores with their intervals: of all pictures, and of each generator."""

from collections.abc import Callable

from scoregate.report.bars import Bar, bar, bars, grouped
from scoregate.report.html import note, safe
from scoregate.report.rows import Row, Scored


def means(scored: Scored) -> str:
    """Return a table for each metric, and one for people's ratings."""
    found = [table(scored, safe(metric), score_of(metric)) for metric in scored.metrics]
    if scored.columns.human is not None:
        title = f"people: {safe(scored.columns.human)}"
        found.append(
            table(scored, title, lambda row: row.human if row.human == row.human else None, "no rating")
        )
    if scored.out_of_scale:
        found.append(note(f"{scored.out_of_scale} ratings outside the scale are left out."))
    return "".join(found) + note(
        "The interval is from drawing items (prompts) again 1,000 times, each with all its pictures."
    )


def score_of(metric: str) -> Callable[[Row], float | None]:
    return lambda row: row.scores.get(metric)


def table(scored: Scored, title: str, value: Callable[[Row], float | None], missing: str = "no score") -> str:
    """Return all pictures first, then each generator."""
    found: list[Bar] = [bar("all", scored.rows, value)]
    if scored.columns.model is not None:
        found += [bar(name, rows, value) for name, rows in grouped(scored.rows, lambda row: row.model)]
    return bars(title, scored.columns.model or "pictures", found, missing)
