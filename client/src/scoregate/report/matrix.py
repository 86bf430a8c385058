"""Which generator is better: the relation of every pair, by the metric and by people's ratings."""

from collections.abc import Sequence
from functools import partial

from scoregate.evaluation import Ordering, ordering
from scoregate.evaluation.arrays import Floats
from scoregate.evaluation.ordering import Pair
from scoregate.report.html import Missing, note, part, safe, table
from scoregate.report.rows import Row, Scored

TURNED = {">": "<", "<": ">", "=": "="}
KINDS = {">": "better", "<": "worse", "=": "same"}

Relations = dict[tuple[str, str], str]


def matrices(scored: Scored, alpha: float) -> str:
    """Return a matrix for each metric.  Raises `Missing` without a column of generators."""
    if scored.columns.model is None:
        raise Missing("No column of generators was named (--model).")
    drawn = "".join(
        part(partial(of_metric, scored, metric, alpha), metric, {"value": "scores"})
        for metric in scored.metrics
    )
    return drawn + note(
        "Wilcoxon's signed-rank test over the items that two generators share, as in Gecko. "
        "The best mean stands first. &gt;: the row's generator is better than the column's. "
        f"&lt;: it is worse. =: p is not below {alpha:g}."
    )


def of_metric(scored: Scored, metric: str, alpha: float) -> str:
    """Return a metric's matrix, and people's if the rows have ratings."""
    rows = [row for row in scored.with_score(metric) if row.model and row.item]
    if not rows:
        raise Missing("no row has a score, a generator and an item")
    drawn = matrix(safe(metric), ordered(scored.worth(metric, rows), rows, alpha))
    left = len(scored.rows) - len(rows)
    said = note(f"{left} rows without a score, a generator or an item are left out.") if left else ""
    people = scored.columns.human
    if people is not None:
        columns = {"value": "scores or ratings"}
        drawn += part(lambda: of_people(scored, metric, rows, alpha), f"{metric} beside {people}", columns)
    return f'<div class="pair">\n{drawn}</div>\n{said}'


def of_people(scored: Scored, metric: str, rows: Sequence[Row], alpha: float) -> str:
    """Return people's matrix, and the number of equal relations.  Raises `Missing`."""
    rated = [row for row in rows if row.human == row.human]
    if not rated:
        raise Missing("no row has a score and a rating")
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


def ordered(values: Floats | list[float], rows: Sequence[Row], alpha: float) -> Ordering:
    return ordering(values, [row.model or "" for row in rows], [row.item or "" for row in rows], alpha=alpha)


def relations(found: Ordering) -> Relations:
    """Return the relations by row and column."""
    known = {(pair.a, pair.b): pair.relation for pair in found.pairs}
    return known | {(b, a): TURNED[relation] for (a, b), relation in known.items()}


def matrix(title: str, found: Ordering) -> str:
    """Return a table with the best generator first; *title* is HTML."""
    tests = {frozenset((pair.a, pair.b)): pair for pair in found.pairs}
    known = relations(found)
    rows = [
        [safe(a), *(cell(known[a, b], tests[frozenset((a, b))]) if a != b else "" for b in found.order)]
        for a in found.order
    ]
    return table(title, ["", *map(safe, found.order)], rows, "matrix")


def cell(relation: str, test: Pair) -> str:
    """Return a relation with its p."""
    return f'<b class="{KINDS[relation]}">{safe(relation)}</b> <small>p {test.p:.2g}</small>'
