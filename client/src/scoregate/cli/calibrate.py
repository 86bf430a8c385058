"""`scoregate calibrate`: which threshold, from scores with labels or without."""

import argparse
import json
import os
import sys
from fractions import Fraction
from pathlib import Path

import scoregate
from scoregate.answers import lower_is_better
from scoregate.cli import plot
from scoregate.cli.arguments import connected
from scoregate.cli.calibration import as_json, as_text, calibrated, compared, counterparts
from scoregate.cli.exits import NO_SCORE, OK, UsageFault, described
from scoregate.cli.origin import origin
from scoregate.cli.samples import Samples, read_samples, turned
from scoregate.cli.thresholds import counterpart, percentiles
from scoregate.text import shown

TIMEOUT_S = 10.0  # to hear the metric's direction
HELP = "choose a threshold from scores: for a pass rate, another model's, or with labels a false-accept rate"


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
    parser.add_argument("--plot", type=Path, metavar="FILE", help=f"draw it ({', '.join(plot.KINDS)})")
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
        plot.check(arguments.plot)
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
        plot.draw(samples, found.threshold, arguments.plot)
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
