"""What was scored, when and by which models; and every row without a score, by the code of its error."""

import json

from scoregate.report.html import safe, table
from scoregate.report.rows import Scored


def head(scored: Scored) -> str:
    """The top of the page."""
    whole = sum(all(metric in row.scores for metric in scored.metrics) for row in scored.rows)
    facts = {
        "drawn": scored.drawn,
        "service": f"Scoregate {scored.version}" if scored.version else "version not known",
        "models": ", ".join(f"{name}: {label}" for name, label in scored.models.items()) or "–",
        "options": json.dumps(dict(scored.options), ensure_ascii=False) if scored.options else "",
        "pictures": str(len(scored.rows)),
        "with all scores": str(whole),
        "without some score": str(len(scored.rows) - whole),
    }
    listed = "".join(f"<dt>{name}</dt><dd>{safe(text)}</dd>" for name, text in facts.items() if text)
    return f'<dl class="facts">{listed}</dl>\n{failures(scored)}'


def failures(scored: Scored) -> str:
    """A table of codes, each with its first row; empty where every row has every score."""
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
