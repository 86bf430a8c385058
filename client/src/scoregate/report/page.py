"""The whole page: one file without scripts and links, in light or dark mode, with its head and the cost."""

import json
from collections import Counter

from scoregate.report.comparisons import agreement, matrices
from scoregate.report.gallery import GALLERY, worst
from scoregate.report.gallery import title as title_of_worst
from scoregate.report.html import bad, facts, in_sections, note, safe, table
from scoregate.report.means import means, skills
from scoregate.report.parts import MissingPartError, part
from scoregate.report.rows import ScoredRow
from scoregate.results import DEMO
from scoregate.runs.summary import kinds_in

HOUR_S = 3600


def head(scored: ScoredRow) -> str:
    """Return the top of the page."""
    whole = sum(all(metric in row.scores for metric in scored.metrics) for row in scored.rows)
    known = {
        "drawn": scored.drawn,
        "service": f"Scoregate {scored.version}" if scored.version else "version not known",
        "models": models(scored) or "–",
        "options": json.dumps(dict(scored.options), ensure_ascii=False) if scored.options else "",
        "pictures": str(len(scored.rows)),
        "with all scores": str(whole),
        "without some score": str(len(scored.rows) - whole),
    }
    return f"{facts(known, 'facts')}{of_demos(scored)}{failures(scored)}{warnings(scored)}"


def models(scored: ScoredRow) -> str:
    """Return the models that gave the scores; if a name stands for several, with the pictures of each."""
    counts = Counter((name, label) for row in scored.rows for name, label in row.models.items())
    counts = counts or Counter(scored.models.items())
    names = Counter(name for name, _ in counts)
    return ", ".join(
        f"{name}: {label}" + (f" ({count} pictures)" if names[name] > 1 else "")
        for (name, label), count in counts.items()
    )


def of_demos(scored: ScoredRow) -> str:
    """Return a line if scores are of demo models."""
    rows = [row for row in scored.rows if any(notice.code == DEMO for notice in row.warnings)]
    if not rows:
        return ""
    text = f"{len(rows)} of {len(scored.rows)} pictures were scored by demo models"
    return bad(f"{text}: these scores mean nothing for real pictures.")


def warnings(scored: ScoredRow) -> str:
    """Return a table of the kinds of warnings, each with its first row; empty without warnings."""
    kinds = kinds_in((f"row {row.number}", row.warnings) for row in scored.rows)
    cells = [
        [safe(each.kind), str(each.rows), safe(": ".join(filter(None, [each.image, each.text])))]
        for each in kinds
    ]
    return table("Warnings", ["kind", "pictures", "the first"], cells) if cells else ""


def failures(scored: ScoredRow) -> str:
    """Return a table of codes, each with its first row; empty if every row has every score."""
    count: dict[tuple[str, str], int] = {}
    first: dict[tuple[str, str], str] = {}
    for row in scored.rows:
        for metric, error in row.errors.items():
            key = metric, error["code"]
            count[key] = count.get(key, 0) + 1
            first.setdefault(key, f"row {row.number}: {error['detail']}")
    cells = [
        [safe(code), safe(metric), str(n), safe(first[metric, code])] for (metric, code), n in count.items()
    ]
    return table("Without a score", ["code", "metric", "pictures", "the first"], cells) if cells else ""


def cost(scored: ScoredRow) -> str:
    """Return a table of time and price over all logged runs.  Raises `MissingPartError`."""
    of = scored.cost
    if not of.asked or not of.seconds:
        raise MissingPartError("No run that scored a picture is recorded, so there are no times.")
    pace, of_1000 = of.asked / of.seconds, 1000 * of.seconds / of.asked
    figures = {
        "pictures requested": f"{of.asked}, in {of.runs} run{'s' * (of.runs > 1)}",
        "wall time": seconds(of.seconds),
        "pictures a second": f"{pace:.3g}",
        "time for 1,000 pictures": seconds(of_1000),
    }
    if of.price_per_hour is not None:
        figures["price of 1,000 pictures"] = f"{of.price_per_hour * of_1000 / HOUR_S:.3g}"
    said = [
        "The time is that of the command, for all metrics together. What the service did for others is in it."
    ]
    if of.price_per_hour is not None:
        said.append(f"At {of.price_per_hour:g} an hour.")
    if of.cached:
        said.append(f"For {of.cached} of them the service had the answers: new pictures cost more.")
    return f"{facts(figures)}{note(' '.join(said))}"


def seconds(value: float) -> str:
    """Return a time with its unit, to three digits."""
    if value < 60:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < HOUR_S else f"{value / HOUR_S:.3g} h"


def page(scored: ScoredRow, *, alpha: float, images: int) -> str:
    """
    Return the page's HTML.

    Args:
        alpha: two generators differ if p is below it.
        images: that are shown of each metric.
    """
    sections = {
        "means": ("Scores", lambda: means(scored)),
        "skills": ("Skills", lambda: skills(scored)),
        "ordering": ("Which generator is better", lambda: matrices(scored, alpha)),
        "agreement": ("Against people's ratings", lambda: agreement(scored)),
        "worst": (title_of_worst(scored), lambda: worst(scored, images)),
        "cost": ("Cost", lambda: cost(scored)),
    }
    drawn = {name: (title, part(body)) for name, (title, body) in sections.items()}
    return in_sections(f"Scores of {scored.name}", head(scored), drawn, STYLE + GALLERY)


STYLE = """
.bars { width: 100%; table-layout: fixed; }
.bars div { display: flex; flex-wrap: wrap; align-items: center; gap: .1rem .75rem; }
.bars div span { flex: 1 1 9rem; }
.bars div svg { flex: 3 1 6rem; min-width: 0; }
.bars th:nth-child(2) { width: 6rem; }
.bars th:nth-child(3) { width: 10rem; }
.bars th:nth-child(n+4) { width: 5rem; }
@media (max-width: 44rem) { .bars { font-size: .87rem; } .bars th, .bars td { padding-right: .4rem; }
  .bars th:nth-child(2) { width: 3.6rem; } .bars th:nth-child(3) { width: 4.8rem; }
  .bars th:nth-child(n+4) { width: 2.7rem; } }
.bar { display: block; width: 100%; height: .9rem; overflow: visible; }
.bar .track { fill: var(--track); }
.bar .fill { fill: var(--accent); opacity: .55; }
.bar path, .scatter path { fill: none; stroke: var(--ink); stroke-width: 1.5;
  vector-effect: non-scaling-stroke; }
.scatter path { stroke: var(--quiet); stroke-width: 1; }
.scatter { display: block; width: 100%; height: auto; }
.scatter circle { fill: var(--accent); fill-opacity: .5; }
.scatter text { fill: var(--quiet); font-size: 11px; }
.matrix th { min-width: 5rem; }
.pair { display: flex; flex-wrap: wrap; gap: 0 3rem; }
.pair > * { flex: 1 1 20rem; min-width: 0; }
.matrix td { white-space: nowrap; }
.better { color: var(--accent); }
.worse { color: var(--bad); }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); gap: 1rem; }
"""
