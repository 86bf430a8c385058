"""The answer of `POST /rank`: pictures of one prompt, the best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from scoregate.errors import ScoregateError, error_of
from scoregate.notebooks import failure, row_table, warning_lines
from scoregate.results import Entries, is_number, wrong
from scoregate.text import number


@dataclass(frozen=True)
class Ranked:
    """
    One picture of a ranking.

    Attributes:
        index: its index in the request.
        score: by the metric `decided_by`; None if it failed.
        accepted: within `top_k`, and not below `threshold`.
        decided_by: the metric that its place comes from.
        error: why it has no score.
    """

    index: int
    score: float | None
    accepted: bool
    decided_by: str | None
    error: ScoregateError | None


class Ranking(Entries[Ranked]):
    """Pictures, best first."""

    @property
    def best(self) -> Ranked:
        """The first picture with a score.  Raises the first error if no picture has a score."""
        for ranked in self:
            if ranked.score is not None:
                return ranked
        error = next((ranked.error for ranked in self if ranked.error), None)
        raise error or ScoregateError("the ranking is empty")

    @property
    def accepted(self) -> Sequence[Ranked]:
        """The accepted pictures, best first."""
        return [ranked for ranked in self if ranked.accepted]

    def _repr_html_(self) -> str:
        rows = [["", "picture", "score", "decided by", "accepted"]]
        for place, ranked in enumerate(self, 1):
            score = failure(ranked.error) if ranked.score is None else number(ranked.score)
            accepted = "yes" if ranked.accepted else "no"
            rows.append([str(place), str(ranked.index), score, escape(ranked.decided_by or ""), accepted])
        return row_table(rows) + warning_lines(self.warnings)


def ranking_of(raw: Mapping[str, Any], count: int, unsent: Mapping[int, Ranked]) -> Ranking:
    """
    Parse the response of `POST /rank` for *count* pictures.  Raises `ScoregateError`.

    Args:
        unsent: the entries of pictures that were not sent, by index; they come last in the ranking.
    """
    places = [place for place in range(count) if place not in unsent]
    ranking = [ranked_of(entry, raw) for entry in raw["ranking"]]
    if sorted(ranked.index for ranked in ranking) != list(range(len(places))):
        raise wrong(f"it does not rank each of {len(places)} pictures once", raw)
    sent = [replace(ranked, index=places[ranked.index]) for ranked in ranking]
    return Ranking([*sent, *unsent.values()], raw, places)


def ranked_of(entry: Mapping[str, Any], raw: Mapping[str, Any]) -> Ranked:
    """Parse one picture of a ranking.  Raises `ScoregateError`."""
    index, error = int(entry["index"]), entry.get("error")
    if not error and not is_number(entry.get("score")):
        raise wrong(f"picture {index} has neither a number nor an error", raw)
    return Ranked(
        index,
        None if error else float(entry["score"]),
        bool(entry["accepted"]),
        entry.get("decided_by"),
        error_of(error, request_id=str(raw.get("request_id", ""))) if error else None,
    )
