"""Comparison of pictures of one prompt in pairs: the method of the client, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from scoregate.errors import ScoregateError, error_of
from scoregate.notebooks import row_table, warning_lines
from scoregate.results import Entries, is_number, wrong
from scoregate.text import fixed

WINNERS = ("a", "b", "tie")


@dataclass(frozen=True)
class Pair:
    """
    The verdict on two pictures, by their indices.

    Attributes:
        winner: `a`, `b` or `tie`.
        orders_agree: both orders of the pictures had the same verdict.
        details: of the scores or of both orders, with `explain`.
    """

    a: int
    b: int
    winner: str
    orders_agree: bool
    details: Mapping[str, Any]


@dataclass(frozen=True)
class FailedPair:
    """Two pictures without a verdict, by their indices, and the reason."""

    a: int
    b: int
    error: ScoregateError


@dataclass(frozen=True)
class Strength:
    """A Bradley-Terry strength, in log-odds, and its standard error."""

    value: float
    stderr: float


class Comparison(Entries[Pair]):
    """
    The pairs that have a verdict.

    Attributes:
        ranking: the indices of the pictures that have a pair, the strongest first.
        win_rates: of each picture, in the order of the request; None without a pair.
        strengths: likewise.
        failed: the pairs without a verdict.
    """

    def __init__(self, raw: Mapping[str, Any], count: int, unsent: Mapping[int, ScoregateError]) -> None:
        places = [place for place in range(count) if place not in unsent]
        asked = raw if places and "pairs" in raw else {"pairs": [], "failed": [], "ranking": []}
        request_id = str(raw.get("request_id", ""))
        super().__init__([pair_of(entry, places, raw) for entry in asked["pairs"]], raw, places)
        rates = asked.get("win_rates") or [None] * len(places)
        strengths = asked.get("strengths") or [None] * len(places)
        ranked = [int(index) for index in asked["ranking"]]
        paired = [place for place, rate in enumerate(rates) if rate is not None]
        if not len(rates) == len(strengths) == len(places) or sorted(ranked) != paired:
            raise wrong(f"it does not rank the pictures that have a pair, of {len(places)}", raw)
        own = dict(zip(places, zip(rates, strengths, strict=True), strict=True))
        self.ranking: Sequence[int] = [places[index] for index in ranked]
        self.win_rates: Sequence[float | None] = [
            rate_of(own.get(place, (None, None))[0], raw) for place in range(count)
        ]
        self.strengths: Sequence[Strength | None] = [
            strength_of(own.get(place, (None, None))[1], raw) for place in range(count)
        ]
        failed = [
            FailedPair(*at(entry, places), error_of(entry["error"], request_id=request_id))
            for entry in asked["failed"]
        ]
        failed += [
            FailedPair(min(place, other), max(place, other), error)
            for place, error in unsent.items()
            for other in range(count)
            if other != place and not (other in unsent and other < place)
        ]
        self.failed: Sequence[FailedPair] = failed

    @property
    def best(self) -> int:
        """The index of the strongest picture.  Raises the first error if no pair has a verdict."""
        if self.ranking:
            return self.ranking[0]
        raise self.failed[0].error if self.failed else ScoregateError("there are no pairs")

    def error(self, index: int) -> ScoregateError | None:
        """Return why a picture has no pair; None if it has one."""
        if self.win_rates[index] is not None:
            return None
        return next((pair.error for pair in self.failed if index in (pair.a, pair.b)), None)

    def _repr_html_(self) -> str:
        rows = [["", "picture", "win rate", "strength", "± standard error"]]
        for place, index in enumerate(self.ranking, 1):
            rate, strength = self.win_rates[index], self.strengths[index]
            if rate is not None and strength is not None:
                shown = [fixed(each, 3) for each in (rate, strength.value, strength.stderr)]
                rows.append([str(place), str(index), *shown])
        why = [f"<br><small>{pair.a}, {pair.b}: {escape(pair.error.detail)}</small>" for pair in self.failed]
        return row_table(rows) + "".join(why) + warning_lines(self.warnings)


def at(entry: Mapping[str, Any], places: Sequence[int]) -> tuple[int, int]:
    """Return the indices of the pictures of a pair."""
    return places[int(entry["a"])], places[int(entry["b"])]


def pair_of(entry: Mapping[str, Any], places: Sequence[int], raw: Mapping[str, Any]) -> Pair:
    """Parse a pair.  Raises `ScoregateError`."""
    if entry["winner"] not in WINNERS:
        raise wrong("a pair has no winner and is no tie", raw)
    return Pair(
        *at(entry, places), entry["winner"], bool(entry["orders_agree"]), dict(entry.get("details") or {})
    )


def rate_of(rate: Any, raw: Mapping[str, Any]) -> float | None:
    """Parse a win rate.  Raises `ScoregateError`."""
    if rate is None:
        return None
    if not is_number(rate) or not 0 <= rate <= 1:
        raise wrong("a win rate is no share", raw)
    return float(rate)


def strength_of(entry: Any, raw: Mapping[str, Any]) -> Strength | None:
    """Parse a strength.  Raises `ScoregateError`."""
    if entry is None:
        return None
    if not (is_number(entry["value"]) and is_number(entry["stderr"])):
        raise wrong("a strength is no number", raw)
    return Strength(float(entry["value"]), float(entry["stderr"]))


def lonely(unsent: Mapping[int, ScoregateError]) -> ScoregateError:
    """Return the error of the only picture that can be sent: that of the others."""
    return next(iter(unsent.values()))
