"""`scoregate calibrate`: which threshold, from scores with labels or without."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Any

import scoregate
from scoregate.answers import lower_is_better
from scoregate.cli.arguments import NO_SCORE, OK, PLOTS, UsageFault, check_plot, connected, described, figure
from scoregate.cli.thresholds import (
    PERCENTS,
    Counterpart,
    Rate,
    Samples,
    accepted,
    counterpart,
    for_false_accept_rate,
    for_pass_rate,
    noted,
    origin,
    percentile,
    percentiles,
    read_samples,
    roc,
    roc_auc,
    turned,
)
from scoregate.text import shown, table

BINS = 40  # of a plot
TIMEOUT_S = 10.0  # to hear the metric's direction

PASS_RATE = Fraction(9, 10)
FALSE_ACCEPT_RATE = Fraction(1, 100)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add(
        "scores",
        type=Path,
        metavar="SCORES",
        help="a result of `scoregate batch`, or any .jsonl, .csv or .parquet",
    )
    add("-m", "--metric", metavar="METRIC", help="the metric, or the column that holds the scores")
    add("--label", metavar="COLUMN", help="the column that says 1 or true of a good picture, else 0 or false")
    add("--lower-is-better", action="store_true", help="of this metric; else as the file or the service says")
    goal = parser.add_mutually_exclusive_group()
    add = goal.add_argument
    add("--pass-rate", type=share, metavar="SHARE", help="the share of pictures to pass (default 0.9)")
    add(
        "--false-accept-rate",
        type=share,
        metavar="SHARE",
        help="the share of bad pictures that may pass (default with labels, 0.01)",
    )
    add(
        "--like",
        type=Path,
        metavar="OLD",
        help="keep the pass rate of these scores of the same pictures by another model",
    )
    parser.add_argument(
        "--threshold", type=float, help="with --like: of the other model (default: its percentiles)"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help=f"draw it ({', '.join(PLOTS)})")
    parser.add_argument("--json", action="store_true", help="print JSON")


def share(text: str) -> Fraction:
    """Return a share as it was written, without rounding."""
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError) as exc:
        raise argparse.ArgumentTypeError("a share is a number from 0 to 1") from exc
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError("a share is a number from 0 to 1")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if no threshold accepts as few bad pictures as required."""
    if arguments.plot:
        check_plot(arguments.plot)
    if arguments.false_accept_rate is not None and not arguments.label:
        raise UsageFault("--false-accept-rate needs labels: name their column with --label")
    if arguments.pass_rate == 0:
        raise UsageFault("--pass-rate 0 passes nothing, so there is no threshold to choose")
    if arguments.threshold is not None and not arguments.like:
        raise UsageFault("--threshold is that of the model whose scores --like names")
    if arguments.like and (arguments.label or arguments.plot):
        raise UsageFault("--like takes neither --label nor --plot")
    samples = read_samples(arguments.scores, arguments.metric, arguments.label)
    source = origin(arguments.scores, samples.metric)
    samples.lower = arguments.lower_is_better or source.lower or lower_there(arguments, samples.metric)
    for note in source.notes():
        print(shown(f"warning: {note}"), file=sys.stderr)
    if arguments.like:
        return like(arguments, samples)
    found = calibrated(samples, arguments.pass_rate, arguments.false_accept_rate)
    print(json.dumps(as_json(found)) if arguments.json else as_text(found))
    if arguments.plot:
        draw(samples, found.threshold, arguments.plot)
    return OK if found.threshold is not None else NO_SCORE


def like(arguments: argparse.Namespace, samples: Samples) -> int:
    """Print the threshold of *samples* that keeps the pass rate of --like; return 0, or 1 for none."""
    old = read_samples(arguments.like, samples.metric, None)
    old.lower = samples.lower
    if len(old.scores) != len(samples.scores):
        counts = f"{len(old.scores)} scores in {arguments.like}, {len(samples.scores)} in {arguments.scores}"
        raise UsageFault(f"{counts}: score the same pictures with both models")
    scores = old.worth(old.scores)
    wanted = (
        [turned(arguments.threshold, old.lower)] if arguments.threshold is not None else percentiles(scores)
    )
    new = samples.worth(samples.scores)
    found = [counterpart(scores, new, threshold) for threshold in wanted]
    print(json.dumps(counterparts(found, samples)) if arguments.json else compared(found, samples))
    return OK if any(each.threshold is not None for each in found) else NO_SCORE


def lower_there(arguments: argparse.Namespace, metric: str) -> bool:
    """Return True if the configured service says that lower scores of *metric* are better."""
    if not ("base_url" in vars(arguments) or os.environ.get("SCOREGATE_BASE_URL")):
        return False
    try:
        with connected(arguments, TIMEOUT_S, retries=0) as client:
            return lower_is_better(client.models().get("metrics", {}).get(metric, {}))
    except scoregate.ScoregateError as exc:
        note = (
            f"higher scores are taken as the better ones, since the service does not answer: {described(exc)}"
        )
        print(shown(f"warning: {note}"), file=sys.stderr)
        return False


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


def draw(samples: Samples, threshold: float | None, path: Path) -> None:
    """Draw histograms with the threshold; with labels one for each, and the ROC curve."""
    drawn = figure()
    groups = {"all": samples.scores}
    if samples.labels:
        groups = {"good": samples.of(True), "bad": samples.of(False)}
    drawn.set_size_inches(5 * len(groups), 4)
    left, *right = drawn.subplots(1, len(groups), squeeze=False)[0]
    span = (min(samples.scores), max(samples.scores))
    if span[0] + (span[1] - span[0]) / BINS == span[0]:
        raise UsageFault(f"{samples.metric}: the scores lie too close together to be drawn")
    for name, scores in groups.items():
        left.hist(scores, bins=BINS, range=span, alpha=0.6, label=f"{name} ({len(scores)})")
    if threshold is not None:
        left.axvline(threshold, color="black", linestyle="--", label=f"threshold {threshold:.4g}")
    left.set_xlabel(samples.metric.replace("$", r"\$"))
    left.set_ylabel("pictures")
    left.legend()
    for axes in right:
        axes.plot(*roc(samples.worth(samples.of(False)), samples.worth(samples.of(True))))
        axes.set_xlabel("false-accept rate")
        axes.set_ylabel("true-accept rate")
    drawn.savefig(path)
