"""The worst pictures: the largest disagreement with people, or the lowest scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from scoregate.report.html import note, safe
from scoregate.report.picture import figure
from scoregate.report.rows import Details, Row, Scored
from scoregate.text import number


@dataclass(frozen=True)
class Shown:
    """A row to show, with texts by name."""

    row: Row
    said: Mapping[str, str]


def title(scored: Scored) -> str:
    """Describe the section."""
    if scored.columns.human is None:
        return "Lowest scores" if not scored.lower else "Worst scores"
    return "Where metric and people disagree most"


def worst(scored: Scored, most: int) -> str:
    """Return the pictures of each metric, *most* at most."""
    chosen = {metric: of_metric(scored, metric, most) for metric in scored.metrics}
    wanted = {each.row.number for shown in chosen.values() for each in shown}
    pictures, details = scored.pictures_of(wanted), scored.details_of(wanted)
    drawn = "".join(gallery(metric, shown, pictures, details) for metric, shown in chosen.items())
    if scored.columns.human is None:
        return drawn
    return drawn + note(
        "Both are ranked among the pictures with a score and a rating, the best first. Shown are those "
        "whose two ranks lie furthest apart."
    )


def gallery(
    metric: str, shown: Sequence[Shown], pictures: Mapping[int, str], details: Mapping[int, Details]
) -> str:
    """Return a metric's pictures."""
    heading = f"<h3>{safe(metric)}</h3>\n"
    if not shown:
        return heading + note("No picture has what is needed for this.")
    figures = "".join(
        figure(
            each.row,
            each.said,
            pictures.get(each.row.number, ""),
            details.get(each.row.number, {}).get(metric),
        )
        for each in shown
    )
    return f'{heading}<div class="gallery">\n{figures}</div>\n'


def of_metric(scored: Scored, metric: str, most: int) -> list[Shown]:
    """Return the rows to show."""
    return (
        lowest(scored, metric, most) if scored.columns.human is None else disagreements(scored, metric, most)
    )


def lowest(scored: Scored, metric: str, most: int) -> list[Shown]:
    rows = scored.with_score(metric)
    order = np.argsort(scored.worth(metric, rows), kind="stable")[:most]
    return [Shown(rows[place], {metric: number(rows[place].scores[metric])}) for place in order]


def disagreements(scored: Scored, metric: str, most: int) -> list[Shown]:
    """Return the rows whose ranks by the metric and by people differ most."""
    rows = scored.rated(metric)
    ranks = rankdata(-scored.worth(metric, rows)), rankdata([-row.human for row in rows])
    apart = np.abs(ranks[0] - ranks[1])
    order = np.argsort(-apart, kind="stable")[:most]
    return [
        Shown(
            rows[place],
            {
                metric: f"{number(rows[place].scores[metric])}, rank {ranks[0][place]:g} of {len(rows)}",
                scored.columns.human or "": f"{rows[place].human:g}, rank {ranks[1][place]:g} of {len(rows)}",
            },
        )
        for place in order
        if apart[place] > 0
    ]
