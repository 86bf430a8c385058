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
import re
from collections.abc import Iterator
from contextlib import contextmanager

import scoregate
from scoregate.cli.arguments import NO_SCORE, OK, UsageError, add_options, connected, options_of
from scoregate.cli.score import read_images
from scoregate.cli.warnings import warn
from scoregate.errors import NoResultError
from scoregate.settings import METRIC, finite, metric_names, whole
from scoregate.text import complain, number, table

IMAGE_POINTER = re.compile(r"/images/(\d+)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="a file, a folder or a URL")
    parser.add_argument("-p", "--prompt", required=True, help="of all pictures")
    parser.add_argument("-m", "--metric", default=METRIC, metavar="METRIC", help="default %(default)s")
    parser.add_argument("--top-k", type=whole, metavar="N", help="accept the best N only")
    parser.add_argument("--threshold", type=finite, metavar="SCORE", help="accept scores as good as this one")
    parser.add_argument(
        "--cascade",
        type=cascade,
        metavar="METRIC:KEEP",
        help="let this cheap metric choose the KEEP pictures that are worth the other",
    )
    parser.add_argument(
        "--on-error",
        choices=("raise", "pass", "block"),
        default="raise",
        help="pictures without a score end the call, or come last as accepted or not (default %(default)s)",
    )
    add_options(parser)
    parser.add_argument("--json", action="store_true", help="print the service's answer, unchanged")


def cascade(text: str) -> scoregate.Cascade:
    """Return the cheap metric, and how many pictures it keeps."""
    metric, colon, keep = text.rpartition(":")
    if not (colon and metric):
        raise argparse.ArgumentTypeError("it has the form METRIC:KEEP, such as clipscore:8")
    return scoregate.Cascade(metric, whole(keep))


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some picture has no score."""
    images, faults = read_images(arguments.images)
    if faults and arguments.on_error == "raise":
        raise NoResultError(f"{'; '.join(faults)}; --on-error pass or block ranks the others")
    names = [name for name, _ in images]
    options, cheap = options_of(arguments), arguments.cascade
    if len(metric_names([arguments.metric])) > 1:
        raise UsageError("rank orders by one metric: name one by --metric, and a cheap one by --cascade")
    metrics = [arguments.metric, *([cheap.metric] if cheap else [])]
    with connected(arguments, metrics=metrics, options=options) as client, naming(names):
        ranking = client.rank(
            arguments.prompt,
            [image for _, image in images],
            metric=arguments.metric,
            accept=scoregate.Accept(
                top_k=arguments.top_k, threshold=arguments.threshold, on_error=arguments.on_error
            ),
            cascade=arguments.cascade,
            orient=arguments.orient,
            options=options,
        )
    if arguments.json:
        print(json.dumps(ranking.raw))
    else:
        print(as_text(ranking, names))
        warn(ranking, names)
    for fault in faults:
        complain(fault)
    return NO_SCORE if faults or any(ranked.error for ranked in ranking) else OK


@contextmanager
def naming(names: list[str]) -> Iterator[None]:
    """Turn an error about some pictures into `NoResultError` with their names; let other errors pass."""
    try:
        yield
    except scoregate.ScoregateError as exc:
        places = [(IMAGE_POINTER.fullmatch(fault["pointer"]), fault["detail"]) for fault in exc.errors]
        if named := [f"{names[int(found[1])]}: {detail}" for found, detail in places if found]:
            raise NoResultError("; ".join(named)) from exc
        raise


def as_text(ranking: scoregate.Ranking, names: list[str]) -> str:
    """Return a table; why a picture has no score goes to stderr."""
    rows = []
    for place, ranked in enumerate(ranking, 1):
        name = names[ranked.index]
        accepted = "yes" if ranked.accepted else "no"
        rows.append([place, name, number(ranked.score), accepted, ranked.decided_by or "–"])
        if ranked.error:
            complain(f"{name}: {ranked.error.code}: {ranked.error.detail}")
    return table(["PLACE", "PICTURE", "SCORE", "ACCEPTED", "DECIDED BY"], rows, right=["PLACE", "SCORE"])
