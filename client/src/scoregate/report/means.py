"""Mean scores with their intervals: of all pictures, generators, skills, and a metric's own parts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from scoregate.evaluation import bootstrap
from scoregate.evaluation.arrays import coded
from scoregate.report.html import note, safe, table
from scoregate.report.parts import MissingPartError
from scoregate.report.rows import EMPTY_CELL, ReportRow, ScoredRow
from scoregate.text import number

SEED = 0

MAX_BARS = 60  # bars of a table
Domain = tuple[float, float]
PART_COLUMNS = {"skills": "skill", "geneval": "task"}


@dataclass(frozen=True)
class MeanInterval:
    """A mean of *n* values, and the 95 % bootstrap interval over items; None for equal values."""

    mean: float
    low: float | None
    high: float | None
    n: int


def interval(values: Sequence[float], items: Sequence[str]) -> MeanInterval:
    """
    Return the mean of one value or more, with a bootstrap interval (percentiles).

    Items are drawn, each with all of its values: pictures of one prompt are not independent of each other.
    """
    names, codes = coded(items)
    sample = bootstrap.means({"mean": (codes, values)}, len(names))
    drawn = bootstrap.drawn(sample, bootstrap.DRAWINGS, SEED)
    low, high = bootstrap.interval(drawn).get("mean", (None, None))
    return MeanInterval(float(np.mean(values)), low, high, len(values))


@dataclass(frozen=True)
class Bar:
    """A group's mean; *missing* of its pictures have no value."""

    name: str
    of: MeanInterval | None
    missing: int


def grouped(
    rows: Iterable[ReportRow], name: Callable[[ReportRow], str | Sequence[str] | None]
) -> Iterator[tuple[str, list[ReportRow]]]:
    """Yield rows by what a column says of them, in the order of the names; a row may have several."""
    found: dict[str, list[ReportRow]] = {}
    for row in rows:
        names = name(row) or EMPTY_CELL
        for each in [names] if isinstance(names, str) else names:
            found.setdefault(each, []).append(row)
    yield from sorted(found.items())


def bar(name: str, rows: Sequence[ReportRow], value: Callable[[ReportRow], float | None]) -> Bar:
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
    largest = {each.name for each in sorted(found, key=lambda each: -size(each))[:MAX_BARS]}
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


def span(of: MeanInterval | None) -> str:
    return "–" if of is None or of.low is None else f"{number(of.low)} to {number(of.high)}"


def domain_of(found: Iterable[Bar]) -> Domain:
    """Return 0 to 1 if all values are within, else their range with 0."""
    ends = [0.0]
    for each in found:
        if each.of:
            ends += [end for end in (each.of.mean, each.of.low, each.of.high) if end is not None]
    low, high = min(ends), max(ends)
    return (low, 1.0) if low == 0 and high <= 1 else (low, high)


def drawn(of: MeanInterval, domain: Domain) -> str:
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


def means(scored: ScoredRow) -> str:
    """Return a table for each metric, and one for people's ratings."""
    found = [means_table(scored, safe(metric), score_of(metric)) for metric in scored.metrics]
    if scored.columns.human is not None:
        title = f"people: {safe(scored.columns.human)}"
        found.append(
            means_table(scored, title, lambda row: row.human if row.human == row.human else None, "no rating")
        )
    if scored.out_of_scale:
        found.append(note(f"{scored.out_of_scale} ratings outside the scale are left out."))
    return "".join(found) + note(
        "The interval is from drawing items (prompts) again 1,000 times, each with all its pictures."
    )


def score_of(metric: str) -> Callable[[ReportRow], float | None]:
    return lambda row: row.scores.get(metric)


def means_table(
    scored: ScoredRow, title: str, value: Callable[[ReportRow], float | None], missing: str = "no score"
) -> str:
    """Return all pictures first, then each generator."""
    found: list[Bar] = [bar("all", scored.rows, value)]
    if scored.columns.model is not None:
        found += [bar(name, rows, value) for name, rows in grouped(scored.rows, lambda row: row.model)]
    return bars(title, scored.columns.model or "pictures", found, missing)


def skills(scored: ScoredRow) -> str:
    """Return a table for each metric and kind of skill.  Raises `MissingPartError` without skills."""
    by_column = scored.metrics if scored.columns.skill is not None else ()
    drawn = "".join(of_column(scored, metric) + of_generators(scored, metric) for metric in by_column)
    drawn += "".join(of_parts(scored, metric) for metric in scored.metrics)
    if not drawn:
        raise MissingPartError(
            "No column of skills was named (--skill), and no metric here has skills of its own, "
            "as the metrics skills and geneval have."
        )
    return drawn


def of_column(scored: ScoredRow, metric: str) -> str:
    """Return a metric's mean of each skill that the column names."""
    column = scored.columns.skill or ""
    found = [
        bar(name, rows, lambda row: row.scores.get(metric))
        for name, rows in grouped(scored.rows, lambda row: row.skill)
    ]
    return bars(f"{safe(metric)} by {safe(column)}", column, found, "no score")


def of_generators(scored: ScoredRow, metric: str) -> str:
    """Return a metric's mean of each skill and generator; empty without generators."""
    if not any(row.model for row in scored.rows):
        return ""
    found = {
        skill: {
            model: number(fmean(row.scores[metric] for row in of_both))
            for model, of_both in grouped(of_skill, lambda row: row.model)
        }
        for skill, of_skill in grouped(scored.with_score(metric), lambda row: row.skill)
    }
    models = sorted({model for means in found.values() for model in means})
    rows = [[safe(skill), *(means.get(model, "") for model in models)] for skill, means in found.items()]
    title = f"{safe(metric)} by {safe(scored.columns.skill or '')} and {safe(scored.columns.model or '')}"
    return table(title, [safe(scored.columns.skill or ""), *map(safe, models)], rows) if rows else ""


def of_parts(scored: ScoredRow, metric: str) -> str:
    """Return a metric's mean of each of its parts, over the pictures that have it; empty without parts."""
    names = sorted({name for row in scored.rows for name in row.parts.get(metric, ())})
    found = [of_part(scored, metric, name) for name in names]
    head = PART_COLUMNS.get(metric, "part")
    return bars(f"{safe(metric)} by its own {head}s", head, found) if found else ""


def of_part(scored: ScoredRow, metric: str, name: str) -> Bar:
    """Return the mean of one part."""
    rows = [row for row in scored.rows if name in row.parts.get(metric, ())]
    return bar(name, rows, lambda row: row.parts[metric][name])
