"""Scored rows, and what a part of the page says of them."""

import html
import re
from collections.abc import Callable
from typing import Any

import pytest

from scoregate.report.rows import Columns, ReportRow, ScoredRow

ALL = Columns("people", "generator", "item", "skill")


@pytest.fixture
def scored() -> Callable[..., ScoredRow]:
    """A scored data set; rows are numbered from 1, and details go by that number."""

    def made(*rows: dict[str, Any], metrics: tuple[str, ...] = ("vqascore",), **more: Any) -> ScoredRow:
        details, pictures = more.pop("details", {}), more.pop("pictures", {})
        found = [
            ReportRow(number, **{"item": row.get("prompt"), **row}) for number, row in enumerate(rows, 1)
        ]
        return ScoredRow(
            name="pairs.jsonl",
            drawn="2026-11-22 12:00 UTC",
            rows=found,
            metrics=metrics,
            details_of=lambda wanted: {n: details[n] for n in wanted if n in details},
            images_of=lambda wanted: {n: pictures[n] for n in wanted if n in pictures},
            **{"columns": ALL, **more},
        )

    return made


def row(score: float | None = None, prompt: str = "a cat", **more: Any) -> dict[str, Any]:
    """A row with a score of `vqascore`, or with an error."""
    error = {"vqascore": {"code": "image_undecodable", "detail": "cut short"}}
    known = {"errors": error} if score is None else {"scores": {"vqascore": score}}
    return {"prompt": prompt, **known, **more}


def texts(part: str) -> list[str]:
    """The text of each table row, each term and each line, in the order of the page."""
    marked = re.sub(r"</(tr|dd|p|h2|h3|caption|li|figure)>", "\n", part)
    lines = re.sub(r"<[^>]*>", " ", marked).split("\n")
    return [html.unescape(" ".join(line.split())) for line in lines if line.split()]
