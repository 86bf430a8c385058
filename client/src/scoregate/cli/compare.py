"""
`scoregate compare`: pictures of one prompt in pairs, the strongest first.

Compares pictures for one prompt in pairs, the strongest first:

```console
$ scoregate compare count.png negation.png binding.png -p "three yellow stars"
PLACE  PICTURE       WIN RATE  STRENGTH  STDERR
    1  count.png       1.0000    0.5911  0.6430
    2  binding.png     0.5000    0.0000  0.6284
    3  negation.png    0.0000   -0.5911  0.6430
```

`-m METRIC` names the metric whose scores are compared, `--rubric preference` (or `@FILE.toml`) a judge that
sees both pictures, `--source` the picture before the edits. `--schedule swiss:4` compares four pairs for each
picture, `--noise` is the largest difference that is a tie. Pairs without a verdict are on stderr, and the
status is 1.
"""

import argparse
import json
from collections.abc import Sequence

import scoregate
from scoregate.cli.arguments import NO_SCORE, OK, add_settings, service_of, settings_of
from scoregate.cli.warnings import warn
from scoregate.runs.request import ComparisonSettings, compare_images
from scoregate.text import complain, number, table

COLUMNS = ["PLACE", "PICTURE", "WIN RATE", "STRENGTH", "STDERR"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, ComparisonSettings)
    parser.add_argument("--json", action="store_true", help="print the service's answer, unchanged")


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some pair has no verdict."""
    comparison, names = compare_images(settings_of(ComparisonSettings, arguments), service_of(arguments))
    if arguments.json:
        print(json.dumps(comparison.raw))
    else:
        print(as_text(comparison, names))
        warn(comparison, names)
    return NO_SCORE if comparison.failed else OK


def as_text(comparison: scoregate.Comparison, names: Sequence[str]) -> str:
    """Return a table; why a pair has no verdict goes to stderr."""
    rows = []
    for place, index in enumerate(comparison.ranking, 1):
        rate, strength = comparison.win_rates[index], comparison.strengths[index]
        if strength is not None:
            shown_rate = [number(rate), number(strength.value), number(strength.stderr)]
            rows.append([place, names[index], *shown_rate])
    for pair in comparison.failed:
        why = f"{names[pair.a]}, {names[pair.b]}: {pair.error.code}: {pair.error.detail}"
        complain(why)
    return table(COLUMNS, rows, right=[name for name in COLUMNS if name != "PICTURE"])
