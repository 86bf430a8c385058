"""A metric against people's ratings, and generators against each other."""

from collections.abc import Sequence
from functools import partial
from math import nan

import numpy as np
import numpy.typing as npt

from scoregate.evaluation.agreement import correlation
from scoregate.evaluation.arrays import Floats
from scoregate.evaluation.ordering import OrderedPair, Ordering, ordering
from scoregate.evaluation.pair_accuracy import pair_accuracy
from scoregate.evaluation.versus import GeneratorPair, versus
from scoregate.formats import cell as plain
from scoregate.report.html import facts, note, safe, table
from scoregate.report.parts import MissingPartError, part, scatter
from scoregate.report.rows import ReportRow, ScoredRow
from scoregate.text import number

MAX_PLOT_POINTS = 2000  # points of a plot
MAX_PAIRED_IMAGES = 5000  # pictures whose pairs are compared: 12 million of them
SEED = 0

TURNED_SIGNS = {">": "<", "<": ">", "=": "="}
KINDS = {">": "better", "<": "worse", "=": "same"}


def agreement(scored: ScoredRow) -> str:
    """Return a plot and its figures for each metric.  Raises `MissingPartError` without ratings."""
    if scored.columns.human is None:
        raise MissingPartError("No column of people's ratings was named (--human).")
    columns = {"metric": "scores", "human": scored.columns.human}
    drawn = "".join(part(partial(agreement_of, scored, metric), metric, columns) for metric in scored.metrics)
    return f'<div class="plots">\n{drawn}</div>\n'


def agreement_of(
    scored: ScoredRow, metric: str, paired_images: int = MAX_PAIRED_IMAGES, plot_points: int = MAX_PLOT_POINTS
) -> str:
    """
    Return a metric's plot and figures.

    Args:
        paired_images, plot_points: at most; of more, some are drawn at random.

    Raises:
        ColumnError: a side is constant.
        MissingPartError: there are too few rows.
    """
    rows = scored.rated(metric)
    if len(rows) < 2:
        raise MissingPartError(f"{len(rows)} rows have a score and a rating, and two are needed")
    worth, human = scored.worth(metric, rows), np.array([row.human for row in rows])
    of_all = correlation(worth, human)
    paired, points = sampled(len(rows), paired_images), sampled(len(rows), plot_points)
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
    listed = facts({name: number(value) for name, value in figures.items()})
    return f"<article>\n<h3>{safe(metric)}</h3>\n{plot}{listed}{note(' '.join(said))}</article>\n"


def sampled(count: int, most: int) -> npt.NDArray[np.intp]:
    """Return the indices of all rows, or of *most* random ones, in order."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(SEED).choice(count, most, replace=False))


def matrices(scored: ScoredRow, alpha: float) -> str:
    """Return a matrix for each metric.  Raises `MissingPartError` without a column of generators."""
    if scored.columns.model is None:
        raise MissingPartError("No column of generators was named (--generator).")
    drawn = "".join(
        part(partial(matrix_of, scored, metric, alpha), metric, {"value": "scores"})
        for metric in scored.metrics
    )
    drawn += pairs_of(scored, alpha)
    return drawn + note(
        "Wilcoxon's signed-rank test over the items that two generators share, as in Gecko. "
        "The best mean stands first. &gt;: the row's generator is better than the column's. "
        f"&lt;: it is worse. =: p is not below {alpha:g}."
    )


def pairs_of(scored: ScoredRow, alpha: float) -> str:
    """Return each two generators by each metric, with the difference and wins; empty if none differ."""
    rows = [row for row in scored.rows if row.model and row.item]
    if len({row.model for row in rows}) < 2:
        return ""
    found = versus(
        {metric: [row.scores.get(metric, nan) for row in rows] for metric in scored.metrics},
        [row.model or "" for row in rows],
        [row.item or "" for row in rows],
        lower=scored.lower,
        alpha=alpha,
    )
    return pairs_table(found.pairs) if any(pair.wins or pair.losses for pair in found.pairs) else ""


def pairs_table(pairs: Sequence[GeneratorPair]) -> str:
    """Return the table of each two generators by each metric."""
    rows = [
        [
            safe(f"{pair.a} – {pair.b}"),
            safe(pair.metric),
            number(pair.difference),
            span(pair.interval),
            f"{pair.wins}, {pair.ties}, {pair.losses}",
            plain(pair.p),
            plain(pair.p_holm),
            plain(pair.needed),
            safe(pair.better or "–"),
        ]
        for pair in pairs
    ]
    heads = ["pair", "metric", "difference", "95 % interval", "wins, ties, losses", "p", "p (Holm)"]
    return table("Pairs", [*heads, "prompts needed", "better"], rows)


def span(interval: tuple[float, float] | None) -> str:
    """Return the ends of an interval."""
    return f"{number(interval[0])} to {number(interval[1])}" if interval else "–"


def matrix_of(scored: ScoredRow, metric: str, alpha: float) -> str:
    """Return a metric's matrix, and people's if the rows have ratings."""
    rows = [row for row in scored.with_score(metric) if row.model and row.item]
    if not rows:
        raise MissingPartError("no row has a score, a generator and an item")
    drawn = matrix(safe(metric), ordered(scored.worth(metric, rows), rows, alpha))
    left = len(scored.rows) - len(rows)
    said = note(f"{left} rows without a score, a generator or an item are left out.") if left else ""
    people = scored.columns.human
    if people is not None:
        columns = {"value": "scores or ratings"}
        drawn += part(lambda: of_people(scored, metric, rows, alpha), f"{metric} beside {people}", columns)
    return f'<div class="pair">\n{drawn}</div>\n{said}'


def of_people(scored: ScoredRow, metric: str, rows: Sequence[ReportRow], alpha: float) -> str:
    """Return people's matrix, and the number of equal relations.  Raises `MissingPartError`."""
    rated = [row for row in rows if row.human == row.human]
    if not rated:
        raise MissingPartError("no row has a score and a rating")
    found = ordered(scored.worth(metric, rated), rated, alpha)
    people = ordered([row.human for row in rated], rated, alpha)
    known = relations(people)
    same = sum(known[pair.a, pair.b] == pair.relation for pair in found.pairs)
    said = note(
        f"The metric gives people's relation in {same} of {len(found.pairs)} pairs, "
        f"by the {len(rated)} pictures with a score and a rating."
    )
    title = f"people: {safe(scored.columns.human or '')}"
    return f"<div>\n{matrix(title, people)}{said}</div>\n"


def ordered(values: Floats | list[float], rows: Sequence[ReportRow], alpha: float) -> Ordering:
    return ordering(values, [row.model or "" for row in rows], [row.item or "" for row in rows], alpha=alpha)


def relations(found: Ordering) -> dict[tuple[str, str], str]:
    """Return the relations by row and column."""
    known = {(pair.a, pair.b): pair.relation for pair in found.pairs}
    return known | {(b, a): TURNED_SIGNS[relation] for (a, b), relation in known.items()}


def matrix(title: str, found: Ordering) -> str:
    """Return a table with the best generator first; *title* is HTML."""
    tests = {frozenset((pair.a, pair.b)): pair for pair in found.pairs}
    known = relations(found)
    rows = [
        [safe(a), *(cell(known[a, b], tests[frozenset((a, b))]) if a != b else "" for b in found.order)]
        for a in found.order
    ]
    return table(title, ["", *map(safe, found.order)], rows, "matrix")


def cell(relation: str, test: OrderedPair) -> str:
    """Return a relation with its p."""
    return f'<b class="{KINDS[relation]}">{safe(relation)}</b> <small>p {test.p:.2g}</small>'
