"""
`scoregate calibrate`: which threshold, from scores with labels or without.

Computes a threshold from a result of `batch`, also a folder of shards' results, or any `.jsonl`, `.csv` or
`.parquet` with a column of numbers. A picture with this score or a better one passes.

Without labels, set the share of pictures that should pass (default 0.9):

```console
$ scoregate calibrate scores.jsonl --pass-rate 0.5 | tail -n 2
threshold 0.9998955781146981: a picture passes where its score is at least this
  pass rate 0.5000, 2 of 4 (95 % interval 0.1500 to 0.8500)
```

With labels (1 or true for a good picture, 0 or false for a bad one), set the share of bad pictures that may
pass (default 0.01):

```console
$ scoregate calibrate scores.jsonl --label good --false-accept-rate 0.5 | tail -n 5
ROC AUC 1.0000, from 2 good and 2 bad pictures
threshold 0.013752911312224865: a picture passes where its score is at least this
  pass rate 0.7500, 3 of 4 (95 % interval 0.3006 to 0.9544)
  true accept rate 1.0000, 2 of 2 (95 % interval 0.3424 to 1.0000)
  false accept rate 0.5000, 1 of 2 (95 % interval 0.0945 to 0.9055)
```

With `--like OLD`, the same pictures' scores by another model or revision, it prints the threshold that
keeps the pass rate of `--threshold`, or of each percentile:

```sh
scoregate calibrate new.jsonl --like old.jsonl --threshold 0.6
```

* **Check the intervals** (Wilson), and the threshold on other samples.
* **Lower is better** for some metrics: marked in a result of `batch`, else by the service or
  `--lower-is-better`.
* `--plot FILE` draws the scores, the threshold, and with labels the ROC curve.
"""

import argparse
import json
from pathlib import Path
from statistics import fmean

from scoregate.calibration import (
    PERCENTS,
    Calibration,
    CalibrationSettings,
    Counterparts,
    noted,
    percentile,
    scores_of,
    thresholds_of,
    turned,
)
from scoregate.cli.arguments import (
    NO_SCORE,
    OK,
    PLOTS,
    UsageError,
    add_settings,
    check_plot,
    described,
    figure,
    service_of,
    settings_of,
)
from scoregate.text import say, shown, table

TIMEOUT_S = 10.0  # the request for the metric's direction may take so long


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, CalibrationSettings)
    parser.add_argument("--plot", type=Path, metavar="FILE", help=f"draw it ({', '.join(PLOTS)})")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if no threshold accepts as few bad pictures as required."""
    settings, plot = settings_of(CalibrationSettings, arguments), arguments.plot
    if plot:
        check_plot(plot)
    if settings.like and plot:
        raise UsageError("--like takes neither --label nor --plot")
    samples = scores_of(settings, service_of(arguments, TIMEOUT_S))
    if fault := samples.fault:  # it is printed before an error of the thresholds
        assumed = "higher scores are taken as the better ones, since the service does not answer"
        say(f"warning: {assumed}: {described(fault)}")
    for note in samples.notes:
        say(f"warning: {note}")
    found = thresholds_of(settings, samples)
    if arguments.json:
        print(json.dumps(found.as_json()))
    else:
        print(as_text(found) if isinstance(found, Calibration) else compared(found))
    if plot and isinstance(found, Calibration):
        found.draw(drawn := figure())
        drawn.savefig(plot)
    return OK if found.complete else NO_SCORE


def as_text(found: Calibration) -> str:
    """Return the table for people."""
    samples, scores = found.samples, sorted(found.samples.scores)
    span = f"from {scores[0]:.6g} to {scores[-1]:.6g}, mean {fmean(scores):.6g}"
    rows = [(f"{percent} %", f"{percentile(scores, percent):.6g}") for percent in PERCENTS]
    lines = [
        f"{shown(samples.metric)}: {len(scores)} scores {span}",
        *noted(samples.left_out, samples.rows),
        "",
        table(["PERCENTILE", "SCORE"], rows, right=["PERCENTILE", "SCORE"]),
        "",
    ]
    if found.auc is not None:
        good, bad = len(samples.of(True)), len(samples.of(False))
        lines.append(f"ROC AUC {found.auc:.4f}, from {good} good and {bad} bad pictures")
    return "\n".join([*lines, *verdict(found)])


def compared(found: Counterparts) -> str:
    """Return the table of thresholds of two models for people."""
    samples = found.samples
    rows = [
        (
            repr(turned(each.old_threshold, samples.lower)),
            "–" if each.threshold is None else repr(turned(each.threshold, samples.lower)),
            f"{each.old_rate.value:.4f}",
            f"{each.rate.value:.4f}" if each.rate else "–",
            each.caution,
        )
        for each in found.thresholds
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
