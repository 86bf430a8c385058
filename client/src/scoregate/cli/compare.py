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
from typing import Any

import scoregate
from scoregate.cli.arguments import NO_SCORE, OK, UsageError, add_options, connected, options_of
from scoregate.cli.rank import naming
from scoregate.cli.score import read_images
from scoregate.cli.warnings import warn
from scoregate.errors import NoResultError
from scoregate.settings import METRIC, finite, name_or_table, whole
from scoregate.text import complain, number, table

COLUMNS = ["PLACE", "PICTURE", "WIN RATE", "STRENGTH", "STDERR"]
ALL = "all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="a file, a folder or a URL; 2 to 32")
    parser.add_argument("-p", "--prompt", required=True, help="of all pictures")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("-m", "--metric", metavar="METRIC", help="compare its scores; default vqascore")
    how.add_argument(
        "--rubric", metavar="NAME", help="have a judge see both pictures: preference, …, or @FILE.toml"
    )
    parser.add_argument("--source", metavar="IMAGE", help="the picture before the edits")
    parser.add_argument("--noise", type=finite, metavar="SCORE", help="the largest difference that is a tie")
    parser.add_argument(
        "--schedule",
        type=schedule,
        default=ALL,
        metavar="KIND:N",
        help="swiss or anchor, with N pairs for each picture, in place of all pairs",
    )
    add_options(parser)
    parser.add_argument("--json", action="store_true", help="print the service's answer, unchanged")


def schedule(text: str) -> str | dict[str, Any]:
    """Return all pairs, or the kind of a schedule and its pairs for each picture."""
    if text == ALL:  # argparse parses the default, too
        return text
    kind, _, count = text.partition(":")
    if kind not in ("swiss", "anchor") or not count:
        raise argparse.ArgumentTypeError("it has the form KIND:N, such as swiss:4 or anchor:2")
    return {"kind": kind, "pairs_per_image": whole(count)}


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some pair has no verdict."""
    images, faults = read_images(arguments.images)
    if faults:
        raise NoResultError("; ".join(faults))
    if len(images) < 2:
        raise UsageError("name two pictures or more, or a folder of them")
    names = [name for name, _ in images]
    options = options_of(arguments)
    rubric = name_or_table(arguments.rubric) if arguments.rubric else None
    metrics = [] if rubric else [arguments.metric or METRIC]
    with connected(arguments, metrics=metrics, options=options) as client, naming(names):
        comparison = client.compare(
            arguments.prompt,
            [image for _, image in images],
            metric=arguments.metric,
            rubric=rubric,
            source=arguments.source,
            pairs=scoregate.Pairing(arguments.schedule, arguments.noise),
            orient=arguments.orient,
            options=options,
        )
    if arguments.json:
        print(json.dumps(comparison.raw))
    else:
        print(as_text(comparison, names))
        warn(comparison, names)
    return NO_SCORE if comparison.failed else OK


def as_text(comparison: scoregate.Comparison, names: list[str]) -> str:
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
