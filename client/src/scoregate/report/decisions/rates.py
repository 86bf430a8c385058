"""
False accepts and false rejects of a policy, from rows that were drawn for labels.

Rows of each decision, a stratum h, were drawn with the probability p_h.  Of the n_h drawn rows of the policy
m_h have labels, and each counts as w_h = n_h / (m_h p_h) rows: which of them people labelled is taken as
chance.  Let b be 1 for a bad picture and 0 for a good one; the mean if people differ.  The estimates are
ratios of sums (Hájek 1971):

    false-accept rate = sum of w b over accepted rows / sum of w b over all rows
    false-reject rate = sum of w (1 - b) over rejected rows / sum of w (1 - b) over all rows

For the interval the m_h labelled rows of each stratum are drawn again with replacement; its ends are
percentiles of the estimates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scoregate.evaluation.arrays import Floats
from scoregate.evaluation.bootstrap import DRAWINGS, ends


class DrawnRow(NamedTuple):
    """A row that was drawn for labels; *good* is the share of its labels that say so, None without labels."""

    decision: str
    probability: float
    good: float | None


@dataclass(frozen=True)
class RateEstimate:
    """
    An estimated rate.

    Attributes:
        value: None if it has none.
        interval: 95 %; None if it has none.
        note: why there is no value or no interval; empty if both are there.
    """

    value: float | None
    interval: tuple[float, float] | None = None
    note: str = ""


class ErrorRates(NamedTuple):
    """The rates of a policy: shares of the bad pictures, and of the good ones."""

    false_accept: RateEstimate
    false_reject: RateEstimate


def error_rates(rows: Sequence[DrawnRow], undrawn: Sequence[str] = (), seed: int = 0) -> ErrorRates:
    """
    Return the rates of a policy, from its rows of one drawing.

    Args:
        undrawn: decisions of the policy of which no row was drawn.
    """
    strata: dict[str, list[DrawnRow]] = {}
    for row in rows:
        strata.setdefault(row.decision, []).append(row)
    labelled = {name: [row for row in each if row.good is not None] for name, each in strata.items()}
    lacking = [*undrawn, *(name for name, each in labelled.items() if not each)]
    if lacking or not rows:
        kinds = ", ".join(sorted(lacking)) or "any decision"
        nothing = RateEstimate(None, note=f"no drawn row of {kinds} has a label")
        return ErrorRates(nothing, nothing)
    parts = [terms(labelled[name], len(strata[name])) for name in strata]
    whole = sum(part.sum(axis=0) for part in parts)
    random = np.random.default_rng(seed)
    drawn = np.array([drawing(parts, random) for _ in range(DRAWINGS)])
    return ErrorRates(
        estimate(whole[:2], drawn[:, :2], "bad", "accepted"),
        estimate(whole[2:], drawn[:, 2:], "good", "rejected"),
    )


def terms(rows: Sequence[DrawnRow], drawn: int) -> Floats:
    """Return the terms of the four sums for the labelled rows of a stratum, of which *drawn* were drawn."""
    weights = np.array([drawn / (len(rows) * row.probability) for row in rows])
    good = np.array([row.good for row in rows], np.float64)
    accepted, rejected = rows[0].decision == "accept", rows[0].decision == "reject"
    bad, fine = weights * (1 - good), weights * good
    return np.stack([accepted * bad, bad, rejected * fine, fine], axis=1)


def drawing(parts: Sequence[Floats], random: np.random.Generator) -> Floats:
    """Return the sums of rows drawn again, as many of each stratum."""
    total = np.zeros(4)
    for part in parts:
        times = np.bincount(random.integers(len(part), size=len(part)), minlength=len(part))
        total += times @ part
    return total


def estimate(whole: Floats, drawn: Floats, kind: str, side: str) -> RateEstimate:
    """Return the ratio of two sums, with the interval of its drawings."""
    above, below = map(float, whole)
    if not below:
        return RateEstimate(None, note=f"no labelled row is {kind}")
    value = above / below
    some = drawn[drawn[:, 1] > 0]
    interval = ends(some[:, 0] / some[:, 1])
    if (
        not 0 < above < below
    ):  # then every drawing has the same ratio, which says nothing about how sure it is
        which = f"none of the labelled {kind} rows is" if not above else f"all labelled {kind} rows are"
        return RateEstimate(value, note=f"no interval: {which} {side}")
    return RateEstimate(value, interval, "" if interval else f"no interval: too few labelled {kind} rows")


def as_row(rates: ErrorRates) -> Mapping[str, Any]:
    """Return both rates as cells of a table."""
    found: dict[str, Any] = {}
    for name, each in rates._asdict().items():
        low, high = each.interval or (None, None)
        found |= {
            f"{name}_rate": each.value,
            f"{name}_low": low,
            f"{name}_high": high,
            f"{name}_note": each.note,
        }
    return found
