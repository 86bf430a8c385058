"""Results as HTML for notebooks, in which every text is escaped."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from scoregate.images import smaller

if TYPE_CHECKING:
    from scoregate.results import Ranking, Report, Score

MOST_WARNINGS = 10
MAX_BYTES = 2 * 2**20  # of one picture; larger ones would make the notebook's file too large
KINDS = {b"\xff\xd8\xff": "jpeg", b"\x89PNG": "png", b"GIF8": "gif", b"BM": "bmp", b"RIFF": "webp"}


def of_score(score: Score) -> str:
    """Return the picture with its prompt, score and questions."""
    head = f"<b>{escape(score.metric)} {score.value:.4f}</b><br>{escape(score.prompt)}"
    below = (
        f"<br><small>{escape(score.model)}</small>{warning_lines(score.warnings)}{questions(score.details)}"
    )
    return row_table([[image_of(score.picture), head + below]])


def of_report(report: Report) -> str:
    """Return a row for each item whose picture was kept, and the number of others."""
    rows = []
    for result, (prompt, shown) in zip(report[: len(report.shown)], report.shown, strict=True):
        cells = [f"{escape(name)} <b>{score:.4f}</b>" for name, score in result.scores.items()]
        cells += [f"{escape(name)} {failure(error)}" for name, error in result.errors.items()]
        asked = [questions(details) for details in result.details.values()]
        rows.append([image_of(shown), "<br>".join([escape(prompt), *cells]) + "".join(asked)])
    more = len(report) - len(rows)
    return (
        row_table(rows) + (f"<small>and {more} more</small>" if more else "") + warning_lines(report.warnings)
    )


def of_ranking(ranking: Ranking) -> str:
    """Return a row for each picture, best first."""
    rows = [["", "picture", "score", "decided by", "accepted"]]
    for place, ranked in enumerate(ranking, 1):
        score = failure(ranked.error) if ranked.score is None else f"{ranked.score:.4f}"
        accepted = "yes" if ranked.accepted else "no"
        rows.append([str(place), str(ranked.index), score, escape(ranked.decided_by or ""), accepted])
    return row_table(rows) + warning_lines(ranking.warnings)


def warning_lines(texts: Sequence[str]) -> str:
    """Return a line for each warning of the service, `MOST_WARNINGS` at most."""
    lines = [f"<br><small>warning: {escape(text)}</small>" for text in texts[:MOST_WARNINGS]]
    more = len(texts) - len(lines)
    return "".join(lines) + (f"<br><small>and {more} more warnings</small>" if more else "")


def questions(details: Any) -> str:
    """Return a table of the questions in a metric's details; empty without any."""
    asked = details.get("questions") if isinstance(details, Mapping) else None
    if not asked:
        return ""
    rows = [
        [escape(str(each.get(name, ""))) for name in ("text", "answer")] + [question_score(each)]
        for each in asked
    ]
    return row_table([["question", "answer", "score"], *rows])


def question_score(question: Mapping[str, Any]) -> str:
    """Return a question's score, if it has one."""
    score = question.get("score")
    return f"{score:.3f}" if isinstance(score, (int, float)) else ""


def failure(error: Any) -> str:
    """Return an error in place of a score."""
    return f"<span style='color:#c00'>{escape(error.code)}: {escape(error.detail)}</span>" if error else ""


def image_of(file: bytes | None) -> str:
    """Return the picture as an image of at most 160 pixels; empty without a file."""
    if not file:
        return ""
    kind = next((name for start, name in KINDS.items() if file.startswith(start)), "")
    if kind == "bmp":
        file = smaller(file)
    if not kind or len(file) > MAX_BYTES:
        return f"<small>{len(file):,} bytes</small>"
    data = base64.b64encode(file).decode()
    return f"<img alt='' style='max-width:160px;max-height:160px' src='data:image/{kind};base64,{data}'>"


def row_table(rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML already."""
    lines = (
        "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in row) + "</tr>" for row in rows
    )
    return "<table>" + "".join(lines) + "</table>"
