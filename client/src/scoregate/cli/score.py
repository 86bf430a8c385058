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
from collections.abc import Iterator

from scoregate.cli.arguments import NO_SCORE, OK, add_settings, service_of, settings_of
from scoregate.cli.questions import explained
from scoregate.cli.warnings import warn
from scoregate.runs.request import ScoredImages, ScoringSettings, score_images
from scoregate.runs.summary import figure_lines, pace
from scoregate.text import complain, number, say, shown, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, ScoringSettings)
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the service's answer, unchanged: each picture in turn with all prompts",
    )


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some score is missing."""
    found = score_images(settings_of(ScoringSettings, arguments), service_of(arguments))
    if arguments.json:
        print(json.dumps(found.report.raw))
    else:
        print("\n\n".join([*tables(found), *explanations(found)]))
        complain(*complaints(found))
        warn(found.report, found.places)
    complain(*found.faults)
    if len(found.report) > 1:
        say(*figure_lines(found.figures), pace(len(found.names), found.seconds))
    return OK if found.complete else NO_SCORE


def tables(found: ScoredImages) -> Iterator[str]:
    """Yield a table of pictures and metrics, or for each metric one of pictures and several prompts."""
    names, prompts, metrics = found.names, found.prompts, found.metrics
    scores = [result.scores for result in found.report]
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


def explanations(found: ScoredImages) -> Iterator[str]:
    """Yield what each score is made of, where the service says so."""
    for place, result in zip(found.places, found.report, strict=True):
        for metric, details in result.details.items():
            score = number(result.scores.get(metric))
            yield f"{shown(place)}, {metric} {score}\n{explained(details)}"


def complaints(found: ScoredImages) -> Iterator[str]:
    """Yield a line for each picture that lacks scores; metrics with the same error are one line."""
    for place, result in zip(found.places, found.report, strict=True):
        lacking = dict[str, list[str]]()
        for metric, error in result.errors.items():
            lacking.setdefault(f"{error.code}: {error.detail}", []).append(metric)
        for why, metrics in lacking.items():
            yield f"{place}: no {', '.join(metrics)}: {why}"
