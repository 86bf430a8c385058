"""The top of the page: the data set, models, warnings, and errors by code."""

import json
from collections import Counter

from scoregate.notices import DEMO
from scoregate.report.html import safe, table
from scoregate.report.rows import Scored


def head(scored: Scored) -> str:
    """Return the top of the page."""
    whole = sum(all(metric in row.scores for metric in scored.metrics) for row in scored.rows)
    facts = {
        "drawn": scored.drawn,
        "service": f"Scoregate {scored.version}" if scored.version else "version not known",
        "models": models(scored) or "–",
        "options": json.dumps(dict(scored.options), ensure_ascii=False) if scored.options else "",
        "pictures": str(len(scored.rows)),
        "with all scores": str(whole),
        "without some score": str(len(scored.rows) - whole),
    }
    listed = "".join(f"<dt>{name}</dt><dd>{safe(text)}</dd>" for name, text in facts.items() if text)
    return f'<dl class="facts">{listed}</dl>\n{of_demos(scored)}{failures(scored)}{warnings(scored)}'


def models(scored: Scored) -> str:
    """Return the models that gave the scores; if a name stands for several, with the pictures of each."""
    pictures = Counter((name, label) for row in scored.rows for name, label in row.models.items())
    pictures = pictures or Counter(scored.models.items())
    names = Counter(name for name, _ in pictures)
    return ", ".join(
        f"{name}: {label}" + (f" ({count} pictures)" if names[name] > 1 else "")
        for (name, label), count in pictures.items()
    )


def of_demos(scored: Scored) -> str:
    """Return a line if scores are of demo models."""
    rows = [row for row in scored.rows if any(notice.code == DEMO for notice in row.warnings)]
    if not rows:
        return ""
    text = f"{len(rows)} of {len(scored.rows)} pictures were scored by demo models"
    return f'<p class="bad">{text}: these scores mean nothing for real pictures.</p>\n'


def warnings(scored: Scored) -> str:
    """Return a table of the kinds of warnings, each with its first row; empty without warnings."""
    count: Counter[str] = Counter()
    first: dict[str, str] = {}
    for row in scored.rows:
        for kind, notice in {notice.kind: notice for notice in row.warnings}.items():
            count[kind] += 1
            first.setdefault(kind, f"row {row.number}: {notice}")
    cells = [[safe(kind), str(n), safe(first[kind])] for kind, n in count.most_common()]
    return table("Warnings", ["kind", "pictures", "the first"], cells) if cells else ""


def failures(scored: Scored) -> str:
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
