"""
`scoregate rank`: pictures of one prompt, the best first.

Orders pictures for one prompt, best first:

```console
$ scoregate rank count.png negation.png binding.png -p "three yellow stars" --top-k 1 --cascade clipscore:2
PLACE  PICTURE         SCORE  ACCEPTED  DECIDED BY
    1  count.png      0.9965  yes       vqascore
    2  negation.png   0.0165  no        vqascore
    3  binding.png   -0.2651  no        clipscore
```

`--cascade`, `--threshold` and `--on-error` are fields of `/rank`. By default a broken picture ends the
command.
"""

import argparse
import json
from collections.abc import Sequence

import scoregate
from scoregate.cli.arguments import NO_SCORE, OK, add_settings, service_of, settings_of
from scoregate.cli.warnings import warn
from scoregate.runs.request import RankingSettings, rank_images
from scoregate.text import complain, number, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, RankingSettings)
    parser.add_argument("--json", action="store_true", help="print the service's answer, unchanged")


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some picture has no score."""
    found = rank_images(settings_of(RankingSettings, arguments), service_of(arguments))
    if arguments.json:
        print(json.dumps(found.ranking.raw))
    else:
        print(as_text(found.ranking, found.names))
        warn(found.ranking, found.names)
    complain(*found.faults)
    return OK if found.complete else NO_SCORE


def as_text(ranking: scoregate.Ranking, names: Sequence[str]) -> str:
    """Return a table; why a picture has no score goes to stderr."""
    rows = []
    for place, ranked in enumerate(ranking, 1):
        name = names[ranked.index]
        accepted = "yes" if ranked.accepted else "no"
        rows.append([place, name, number(ranked.score), accepted, ranked.decided_by or "–"])
        if ranked.error:
            complain(f"{name}: {ranked.error.code}: {ranked.error.detail}")
    return table(["PLACE", "PICTURE", "SCORE", "ACCEPTED", "DECIDED BY"], rows, right=["PLACE", "SCORE"])
