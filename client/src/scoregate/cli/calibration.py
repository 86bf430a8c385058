"""A threshold with its evidence, as numbers and in words."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import fmean
from typing import Any

from scoregate.cli.exits import UsageFault
from scoregate.cli.samples import Samples, noted, turned
from scoregate.cli.thresholds import (
    PERCENTS,
    Counterpart,
    Rate,
    accepted,
    for_false_accept_rate,
    for_pass_rate,
    percentile,
    roc_auc,
)
from scoregate.text import shown, table

PASS_RATE = Fraction(9, 10)
FALSE_ACCEPT_RATE = Fraction(1, 100)


@dataclass(frozen=True)
class Calibration:
    """
    What the scores say.

    Attributes:
        goal: `pass_rate` or `false_accept_rate`.
        threshold: None if even the best score accepts more bad pictures than wanted.
        rates: at the threshold, by name.
        auc: None without labels.
    """

    samples: Samples
    goal: str
    wanted: Fraction
    threshold: float | None
    rates: dict[str, Rate] = field(default_factory=dict)
    auc: float | None = None


def calibrated(
    samples: Samples, pass_rate: Fraction | None, false_accept_rate: Fraction | None
) -> Calibration:
    """
    Return the threshold for what is wanted; with labels and nothing wanted, for a false-accept rate.

    Raises:
        UsageFault: all scores or all labels are the same.
    """
    scores, bad, good = map(samples.worth, (samples.scores, samples.of(False), samples.of(True)))
    if scores[0] == scores[-1]:
        alike = f"all {len(scores)} scores are {samples.scores[0]!r}" if scores[1:] else "there is one score"
        raise UsageFault(f"{samples.metric}: {alike}, and a threshold needs scores that differ")
    if samples.labels and not (bad and good):
        raise UsageFault(f"all {len(scores)} labels are {'1' if good else '0'}, and both kinds are needed")
    threshold: float | None
    if pass_rate is not None or not samples.labels:
        goal, wanted = "pass_rate", PASS_RATE if pass_rate is None else pass_rate
        threshold = for_pass_rate(scores, wanted)
    else:
        goal = "false_accept_rate"
        wanted = FALSE_ACCEPT_RATE if false_accept_rate is None else false_accept_rate
        threshold = for_false_accept_rate(bad, good, wanted)
    groups = {"pass_rate": scores, "true_accept_rate": good, "false_accept_rate": bad}
    rates = {
        name: accepted(group, threshold) for name, group in groups.items() if group and threshold is not None
    }
    auc = roc_auc(bad, good) if samples.labels else None
    found = None if threshold is None else turned(threshold, samples.lower)
    return Calibration(samples, goal, wanted, found, rates, auc)


def as_json(found: Calibration) -> dict[str, Any]:
    """Return the calibration as JSON."""
    samples, scores = found.samples, sorted(found.samples.scores)
    content: dict[str, Any] = {
        "metric": samples.metric,
        "direction": f"{'lower' if samples.lower else 'higher'} is better",
        "rows": samples.rows,
        "scores": len(scores),
        "left_out": samples.left_out,
        "mean": fmean(scores),
        "min": scores[0],
        "max": scores[-1],
        "percentiles": {str(percent): percentile(scores, percent) for percent in PERCENTS},
        "wanted": {found.goal: float(found.wanted)},
        "threshold": found.threshold,
        "rates": {name: rate.as_json() for name, rate in found.rates.items()},
    }
    if found.auc is not None:
        content["roc_auc"] = found.auc
        content["labels"] = {"good": len(samples.of(True)), "bad": len(samples.of(False))}
    return content


def as_text(found: Calibration) -> str:
    """Return the table for people."""
    samples, scores = found.samples, sorted(found.samples.scores)
    span = f"from {scores[0]:.6g} to {scores[-1]:.6g}, mean {fmean(scores):.6g}"
    rows = [(f"{percent} %", f"{percentile(scores, percent):.6g}") for percent in PERCENTS]
    lines = [
        f"{shown(samples.metric)}: {len(scores)} scores {span}",
        *noted(samples),
        "",
        table(["PERCENTILE", "SCORE"], rows, right=["PERCENTILE", "SCORE"]),
        "",
    ]
    if found.auc is not None:
        good, bad = len(samples.of(True)), len(samples.of(False))
        lines.append(f"ROC AUC {found.auc:.4f}, from {good} good and {bad} bad pictures")
    return "\n".join([*lines, *verdict(found)])


def counterparts(found: Sequence[Counterpart], samples: Samples) -> dict[str, Any]:
    """Return thresholds of two models as JSON."""
    return {
        "metric": samples.metric,
        "direction": f"{'lower' if samples.lower else 'higher'} is better",
        "scores": len(samples.scores),
        "thresholds": [
            {
                "old": turned(each.old_threshold, samples.lower),
                "new": None if each.threshold is None else turned(each.threshold, samples.lower),
                "old_rate": each.old_rate.as_json(),
                "new_rate": each.rate and each.rate.as_json(),
                "caution": each.caution,
            }
            for each in found
        ],
    }


def compared(found: Sequence[Counterpart], samples: Samples) -> str:
    """Return the table of thresholds of two models for people."""
    rows = [
        (
            repr(turned(each.old_threshold, samples.lower)),
            "–" if each.threshold is None else repr(turned(each.threshold, samples.lower)),
            f"{each.old_rate.value:.4f}",
            f"{each.rate.value:.4f}" if each.rate else "–",
            each.caution,
        )
        for each in found
    ]
    heads = ["OLD THRESHOLD", "NEW THRESHOLD", "OLD PASS RATE", "NEW PASS RATE", "CAUTION"]
    passes = f"a picture passes where its score is {'at most' if samples.lower else 'at least'} the threshold"
    return f"{shown(samples.metric)}: {passes}\n\n{table(heads, rows, right=heads[:4])}"


def verdict(found: Calibration) -> list[str]:
    """Return the threshold in full, so that it can be copied, and the rates at it."""
    if found.threshold is None:
        goal = f"{found.goal.replace('_', '-')} of {float(found.wanted):g}"
        best = "lowest" if found.samples.lower else "highest"
        return [f"No threshold has a {goal}: too many bad pictures have the {best} score."]
    least = "at most" if found.samples.lower else "at least"
    return [
        f"threshold {found.threshold!r}: a picture passes where its score is {least} this",
        *(f"  {name.replace('_', ' ')} {rate}" for name, rate in found.rates.items()),
    ]
