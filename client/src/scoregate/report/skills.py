"""Means by skill: by the data set's column, also by generator, and by parts that a metric has of its own."""

from statistics import fmean

from scoregate.report.bars import Bar, bar, bars, grouped
from scoregate.report.html import Missing, safe, table
from scoregate.report.rows import Scored
from scoregate.text import number

OF_ITS_OWN = {"skills": "skill", "geneval": "task"}


def skills(scored: Scored) -> str:
    """Return a table for each metric and kind of skill.  Raises `Missing` without skills."""
    by_column = scored.metrics if scored.columns.skill is not None else ()
    drawn = "".join(of_column(scored, metric) + of_generators(scored, metric) for metric in by_column)
    drawn += "".join(of_parts(scored, metric) for metric in scored.metrics)
    if not drawn:
        raise Missing(
            "No column of skills was named (--skill), and no metric here has skills of its own, "
            "as the metrics skills and geneval have."
        )
    return drawn


def of_column(scored: Scored, metric: str) -> str:
    """Return a metric's mean of each skill that the column names."""
    column = scored.columns.skill or ""
    found = [
        bar(name, rows, lambda row: row.scores.get(metric))
        for name, rows in grouped(scored.rows, lambda row: row.skill)
    ]
    return bars(f"{safe(metric)} by {safe(column)}", column, found, "no score")


def of_generators(scored: Scored, metric: str) -> str:
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


def of_parts(scored: Scored, metric: str) -> str:
    """Return a metric's mean of each of its parts, over the pictures that have it; empty without parts."""
    names = sorted({name for row in scored.rows for name in row.parts.get(metric, ())})
    found = [of_part(scored, metric, name) for name in names]
    head = OF_ITS_OWN.get(metric, "part")
    return bars(f"{safe(metric)} by its own {head}s", head, found) if found else ""


def of_part(scored: Scored, metric: str, name: str) -> Bar:
    """Return the mean of one part."""
    rows = [row for row in scored.rows if name in row.parts.get(metric, ())]
    return bar(name, rows, lambda row: row.parts[metric][name])
