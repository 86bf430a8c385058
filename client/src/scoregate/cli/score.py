"""
`scoregate score`: pictures, which are files, folders or URLs, and prompts.

```console
$ scoregate score binding.png presence.jpg -p "a green circle and a red square" -m vqascore -m clipscore
PICTURE       vqascore  clipscore
binding.png     0.9999     0.5950
presence.jpg    0.0118    -0.2966
vqascore: mean 0.5059, median 0.5059; lowest 0.0118 presence.jpg, 0.9999 binding.png
clipscore: mean 0.1492, median 0.1492; lowest -0.2966 presence.jpg, 0.5950 binding.png
```

With several prompts each picture is scored against each:

```console
$ scoregate score binding.png count.png -p "a green circle and a red square" -p "three yellow stars"
PICTURE      a green circle and a red square  three yellow stars
binding.png                           0.9999              0.0209
count.png                             0.0132              0.9965
vqascore: mean 0.5076, median 0.5087; lowest 0.0132 count.png, "a green circle and a red square", 0.0209 binding.png, "three yellow stars", 0.9965 count.png, "three yellow stars"
```

`--explain` shows the parts of a score: P is the probability of "yes", or of the answer among choices; AFTER
lists parents:

```console
$ scoregate score binding.png -p "a green circle and a red square" -m dsg --explain
PICTURE         dsg
binding.png  1.0000

binding.png, dsg 1.0000
  ID  QUESTION              AFTER  EXPECTED  ANSWER       P   SCORE
   1  Is there a circle?           yes       yes     0.9999  1.0000
   2  Is the circle green?  1      yes       yes     0.9999  1.0000
   3  Is there a square?           yes       yes     0.9999  1.0000
   4  Is the square red?    3      yes       yes     0.9999  1.0000
  question_set: sha256:d4d32b7aa9f43478b437ad532048695381898d8e647377fa0bdfc796d9b34134
  no question about: and
```

Of a `judge` it shows the instructions, the written answers, and for each output the value and the labels'
probabilities.

Pictures are files, folders, or URLs, which the command downloads. HEIC, also with the brand `mif1`, needs
`pillow-heif`. All are one request: for many use batch. `--grid 2x2` scores each tile of sheets.

In all commands, `-m METRIC` (`--metric`) is a metric, or in tables the column of its scores, and `-m a,b` is
`-m a -m b`. `--generator COLUMN` (`--model`) is the column of the generators. Give options of metrics one by
one (`--option vqascore.output=logit`, of an output `--option judge.faithful.rubric=poster`, the
table of a file `--option judge.rubric=@poster.toml`), or as JSON with `--options`. `--orient exif` rotates
pictures. Warnings are lines on stderr; with `--strict` each is an error instead of the score, in `score`,
`rank`, `batch` (whose next run retries it) and `report`.
"""  # noqa: E501

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import scoregate
from scoregate.cli.arguments import (
    NO_SCORE,
    OK,
    UsageError,
    add_grid,
    add_metrics,
    connected,
    metrics_of,
    options_of,
)
from scoregate.cli.questions import explained
from scoregate.cli.warnings import warn
from scoregate.data.folders import image_files, left_out
from scoregate.data.rows import readable
from scoregate.data.tiles import Grid, cut, grid_of
from scoregate.errors import reason_of
from scoregate.http import httpx
from scoregate.images import is_url
from scoregate.records import check_regular
from scoregate.results import lower_is_better
from scoregate.runs.summary import ScoreFigures, figure_lines, pace
from scoregate.text import LEFT_OUT, complain, meant_file, number, say, say_unused, shown, table

FETCH_S = 60.0
MAX_BYTES = 64 * 2**20  # bytes of a picture at a URL; a request has this limit by default


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="a file, a folder or a URL")
    parser.add_argument(
        "-p",
        "--prompt",
        action="append",
        default=[],
        dest="prompts",
        metavar="PROMPT",
        help="may be given several times: each picture is scored against each prompt; some metrics need none",
    )
    add_metrics(parser)
    add_grid(parser)
    parser.add_argument(
        "--explain",
        action="store_true",
        help="show what each score is made of: questions, answers, probabilities",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the service's answer, unchanged: each picture in turn with all prompts",
    )


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some score is missing."""
    images, faults = read_images(arguments.images)
    if arguments.grid:
        grid = grid_of(arguments.grid)
        images = [tile for name, data in images for tile in tiles_of(name, data, grid)]
    prompts = list(dict.fromkeys(arguments.prompts)) or [""]
    items = [
        scoregate.Item(prompt=prompt, image=image, orient=arguments.orient)
        for _, image in images
        for prompt in prompts
    ]
    metrics, options = metrics_of(arguments), options_of(arguments)
    with connected(arguments, metrics=metrics, options=options) as client:
        begun_s = monotonic()
        report = client.score_items(items, metrics, options=options, explain=arguments.explain)
        seconds = monotonic() - begun_s
        lower = lower_metrics(client, metrics) if len(items) > 1 else set[str]()
    names = [name for name, _ in images]
    if arguments.json:
        print(json.dumps(report.raw))
    else:
        print("\n\n".join([*tables(report, names, prompts, metrics), *explanations(report, names, prompts)]))
        complain(*complaints(report, names, prompts))
        warn(report, places(names, prompts))
    complain(*faults)
    if len(items) > 1:
        say(*figure_lines(figures_of(report, places(names, prompts), lower)), pace(len(images), seconds))
    return NO_SCORE if report.partial or faults else OK


def tables(
    report: scoregate.Report, names: Sequence[str], prompts: Sequence[str], metrics: Sequence[str]
) -> Iterator[str]:
    """Yield a table of pictures and metrics, or for each metric one of pictures and several prompts."""
    scores = [result.scores for result in report]
    if len(prompts) == 1:
        rows = [
            [name, *(number(of.get(metric)) for metric in metrics)]
            for name, of in zip(names, scores, strict=True)
        ]
        yield table(["PICTURE", *metrics], rows, right=metrics)
        return
    for metric in metrics:
        cells = [number(of.get(metric)) for of in scores]
        rows = [
            [name, *cells[place * len(prompts) : (place + 1) * len(prompts)]]
            for place, name in enumerate(names)
        ]
        head = f"{shown(metric)}\n" if len(metrics) > 1 else ""
        yield head + table(["PICTURE", *prompts], rows, right=prompts)


def places(names: Sequence[str], prompts: Sequence[str]) -> list[str]:
    """Return what each item of the request is about: its picture, and its prompt if there are several."""
    if len(prompts) == 1:
        return [*names]
    return [f'{name}, "{prompt}"' for name in names for prompt in prompts]


def explanations(report: scoregate.Report, names: Sequence[str], prompts: Sequence[str]) -> Iterator[str]:
    """Yield what each score is made of, where the service says so."""
    for place, result in zip(places(names, prompts), report, strict=True):
        for metric, details in result.details.items():
            score = number(result.scores.get(metric))
            yield f"{shown(place)}, {metric} {score}\n{explained(details)}"


def complaints(report: scoregate.Report, names: Sequence[str], prompts: Sequence[str]) -> Iterator[str]:
    """Yield a line for each picture that lacks scores; metrics with the same error are one line."""
    for place, result in zip(places(names, prompts), report, strict=True):
        lacking = dict[str, list[str]]()
        for metric, error in result.errors.items():
            lacking.setdefault(f"{error.code}: {error.detail}", []).append(metric)
        for why, metrics in lacking.items():
            yield f"{place}: no {', '.join(metrics)}: {why}"


def lower_metrics(client: scoregate.Client, metrics: Sequence[str]) -> set[str]:
    """Return the metrics whose lower scores are better; none behind a gateway that does not list metrics."""
    with suppress(scoregate.ScoregateError):
        known = client.models().get("metrics", {})
        return {name for name in metrics if lower_is_better(known.get(name, {}))}
    return set()


def figures_of(report: scoregate.Report, names: Sequence[str], lower: set[str]) -> dict[str, ScoreFigures]:
    """Return figures of each metric."""
    found: dict[str, ScoreFigures] = {}
    for name, result in zip(names, report, strict=True):
        for metric, score in result.scores.items():
            found.setdefault(metric, ScoreFigures(metric in lower)).add(score, name)
    return found


def read_images(names: Iterable[str]) -> tuple[list[tuple[str, bytes]], list[str]]:
    """
    Return the pictures with their names, and a line about each that cannot be read.

    A folder has the pictures of all its files, in order.

    Raises:
        UsageError: a name leads to no picture or does not exist, or none can be read.
    """
    every = [(name, tried(name, name == given)) for given in names for name in found(given)]
    read = [(name, data) for name, (data, why) in every if not why]
    faults = [why for _, (_, why) in every if why]
    if not read:
        raise UsageError(faults[0])
    return read, faults


def tiles_of(name: str, sheet: bytes, grid: Grid) -> list[tuple[str, bytes]]:
    """Return the tiles of a sheet, each with its number in its name.  Raises `UsageError`."""
    try:
        return [(f"{name}#{number}", cut(sheet, grid, number)) for number in range(grid.tiles)]
    except ValueError as exc:
        raise UsageError(f"{name}: {exc}") from None


def tried(name: str, given: bool) -> tuple[bytes, str]:
    """Return a picture's bytes, or a line that says why it cannot be read; a *given* name must exist."""
    try:
        return sendable(name), ""
    except UsageError as exc:
        return b"", str(exc)
    except OSError as exc:
        if given and isinstance(exc, FileNotFoundError):
            raise UsageError(f"{name}: {exc.strerror}{meant_file(name) or meant_prompt(name)}") from None
        return b"", f"{name}: {exc.strerror or exc}"


def meant_prompt(name: str) -> str:
    """Return how a prompt is given, for a text that is not like the name of a file; else an empty text."""
    return "" if Path(name).suffix else f'; is it the prompt? -p "{name}"'


def found(name: str) -> Iterator[str]:
    """Yield the names of a folder's pictures, or *name*."""
    folder = Path(name)
    if is_url(name) or not folder.is_dir():
        yield name
        return
    files = sorted(image_files(folder))
    if not files:
        raise UsageError(f"{name}: there is no picture in this folder")
    say_unused(LEFT_OUT, left_out(folder))
    yield from map(str, files)


def sendable(name: str) -> bytes:
    """Return the bytes of one picture, in a format of the service.  Raises `OSError` or `UsageError`."""
    if not is_url(name):
        check_regular(name)  # a device or a pipe may never end
    data = fetched(name) if is_url(name) else Path(name).read_bytes()
    if not data:
        raise UsageError(f"{name}: the file is empty")
    try:
        return readable(data)
    except ValueError as exc:
        raise UsageError(f"{name}: {exc}") from None


def fetched(url: str, transport: httpx.BaseTransport | None = None) -> bytes:
    """GET a URL, by default through the environment's proxy, if any.  Raises `UsageError`."""
    data = bytearray()
    settings: dict[str, Any] = {"timeout": FETCH_S, "follow_redirects": True, "transport": transport}
    try:
        headers = {"Accept-Encoding": "identity"}
        with httpx.Client(**settings) as client, client.stream("GET", url, headers=headers) as response:
            response.raise_for_status()
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise UsageError(f"{url}: was sent with a Content-Encoding, against the request")
            for block in response.iter_bytes():
                data += block
                if len(data) > MAX_BYTES:
                    raise UsageError(f"{url}: has more than {MAX_BYTES} bytes")
    except httpx.HTTPStatusError as exc:
        raise UsageError(f"{url}: HTTP status {exc.response.status_code}") from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as exc:
        raise UsageError(f"{url}: {reason_of(exc)}") from None
    return bytes(data)
