"""
`scoregate reproduce`: score a data set again, and compare with what a manifest belongs to.

Scores the data set of a manifest again, with the same options and question sets, and compares:

```console
$ scoregate reproduce scores.jsonl.manifest.json
METRIC    SCORES  DIFFERENT  LARGEST DIFFERENCE
vqascore       4          0            0.000000
```

It sends question sets that the service lacks, and lists other versions, models, defaults or data, and rows
whose scores differ by more than `--tolerance` (0.0001).
"""

import argparse
import json

from scoregate.cli.arguments import NO_SCORE, OK, add_settings, service_of, settings_of
from scoregate.errors import NoResultError
from scoregate.runs.batch import TIMEOUT_S
from scoregate.runs.reproduction import Differences, Reproduction, reproduce
from scoregate.text import say, shown, table

MAX_SHOWN_ROWS = 10  # rows that differ


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, Reproduction)
    parser.add_argument("--json", action="store_true", help="print everything for programs")


def run(arguments: argparse.Namespace) -> int:
    """Return 0 if every score is reproduced, otherwise 1."""
    settings = settings_of(Reproduction, arguments)
    found = reproduce(settings, service_of(arguments, TIMEOUT_S))
    (print_json if arguments.json else print_text)(found)
    if not found.compared:
        raise NoResultError("nothing was compared: the results have no score of a row of the data set")
    return OK if found.same else NO_SCORE


def print_json(found: Differences) -> None:
    """Print one object."""
    provenance = {name: {"then": before, "now": after} for name, before, after in found.changes}
    metrics = {name: vars(each) for name, each in found.metrics.items()}
    print(json.dumps({"metrics": metrics, "provenance": provenance, "rows": found.rows, "lost": found.lost}))


def print_text(found: Differences) -> None:
    """Print tables: what differs in the provenance, the metrics, and the first rows that differ."""
    if found.changes:
        print(table(["PROVENANCE", "THEN", "NOW"], found.changes) + "\n")
    rows = [
        [name, each.compared, each.different, f"{each.largest:.6f}"] for name, each in found.metrics.items()
    ]
    heads = ["METRIC", "SCORES", "DIFFERENT", "LARGEST DIFFERENCE"]
    print(table(heads, rows, right=heads[1:]))
    for row in found.rows[:MAX_SHOWN_ROWS]:
        then, now = (f"{row[when]:.6g}" if row[when] is not None else "no score" for when in ("then", "now"))
        why = f" ({row['error']})" if "error" in row else ""
        print(shown(f"row {row['row']}, {row['image']}: {row['metric']} was {then} and is {now}{why}"))
    if (more := len(found.rows) - MAX_SHOWN_ROWS) > 0:
        print(f"and {more} more")
    if found.lost:
        say(f"{found.lost} lines of the results are of no row of the data set")
