"""A metric against people's ratings: a scatter plot, and figures of agreement."""

from functools import partial

import numpy as np
import numpy.typing as npt

from scoregate.evaluation import correlation, pair_accuracy
from scoregate.report.html import Missing, note, part, safe
from scoregate.report.rows import Scored
from scoregate.report.scatter import scatter
from scoregate.text import number

DRAWN = 2000  # points of a plot
PAIRED = 5000  # pictures whose pairs are compared: 12 million of them
SEED = 0


def agreement(scored: Scored) -> str:
    """Return a plot and its figures for each metric.  Raises `Missing` without a column of ratings."""
    if scored.columns.human is None:
        raise Missing("No column of people's ratings was named (--human).")
    columns = {"metric": "scores", "human": scored.columns.human}
    drawn = "".join(part(partial(of_metric, scored, metric), metric, columns) for metric in scored.metrics)
    return f'<div class="plots">\n{drawn}</div>\n'


def of_metric(scored: Scored, metric: str) -> str:
    """Return a metric's plot and figures.  Raises `BadColumn` for a constant side, `Missing` for few rows."""
    rows = scored.rated(metric)
    if len(rows) < 2:
        raise Missing(f"{len(rows)} rows have a score and a rating, and two are needed")
    worth, human = scored.worth(metric, rows), np.array([row.human for row in rows])
    of_all = correlation(worth, human)
    paired, points = sampled(len(rows), PAIRED), sampled(len(rows), DRAWN)
    pairs = pair_accuracy(worth[paired], human[paired])
    figures = {
        "Spearman": of_all.spearman,
        "Kendall": of_all.kendall,
        "Pearson": of_all.pearson,
        "pairs ordered as people do": pairs.accuracy,
    }
    said = [f"{len(rows)} of {len(scored.rows)} pictures have a score and a rating."]
    said.append(f"Scores up to {pairs.epsilon:.3g} apart count as tied in a pair.")
    if len(paired) < len(rows):
        said.append(f"Pairs are those of {len(paired)} pictures drawn at random.")
    if len(points) < len(rows):
        said.append(f"{len(points)} points drawn at random are shown.")
    if metric in scored.lower:
        said.append("Lower scores are better, so the signs are turned.")
    people = scored.columns.human or ""
    plot = scatter([(rows[place].human, rows[place].scores[metric]) for place in points], people, metric)
    listed = "".join(f"<dt>{name}</dt><dd>{number(value)}</dd>" for name, value in figures.items())
    return f"<article>\n<h3>{safe(metric)}</h3>\n{plot}<dl>{listed}</dl>\n{note(' '.join(said))}</article>\n"


def sampled(count: int, most: int) -> npt.NDArray[np.intp]:
    """Return the indices of all rows, or of *most* random ones, in order."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(SEED).choice(count, most, replace=False))
