"""Parts of results as HTML for notebooks, in which every text is escaped."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from scoregate.images import smaller
from scoregate.text import fixed

MAX_WARNINGS = 10
MAX_BYTES = 2 * 2**20  # bytes of a picture; larger ones would make the notebook's file too large
IMAGE_KINDS = {b"\xff\xd8\xff": "jpeg", b"\x89PNG": "png", b"GIF8": "gif", b"BM": "bmp", b"RIFF": "webp"}


def warning_lines(texts: Sequence[str]) -> str:
    """Return a line for each warning of the service, `MAX_WARNINGS` at most."""
    lines = [f"<br><small>warning: {escape(text)}</small>" for text in texts[:MAX_WARNINGS]]
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
    return fixed(score, 3) if isinstance(score, (int, float)) else ""


def failure(error: Any) -> str:
    """Return an error in place of a score."""
    return f"<span style='color:#c00'>{escape(error.code)}: {escape(error.detail)}</span>" if error else ""


def image_of(file: bytes | None) -> str:
    """Return the picture as an image of at most 160 pixels; empty without a file."""
    if not file:
        return ""
    kind = next((name for start, name in IMAGE_KINDS.items() if file.startswith(start)), "")
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
