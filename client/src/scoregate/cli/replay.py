"""`scoregate replay`: published figures, computed from published answers by the service's code."""

import argparse
import json
from argparse import SUPPRESS
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scoregate.cli.arguments import OK, UsageFault
from scoregate.records import json_or_text

METRICS = {
    "dsg": "DSG's answers against people's ratings",
    "vq2": "VQ²'s answers against people's ratings",
    "tifa": "TIFA's sample of an evaluation",
    "gecko": "Gecko's verdicts on the questions of its rubrics",
    "geneval": "GenEval's checks of the objects in pictures",
}

# Options of the metric on which its checks of detected objects depend.
OF_GENEVAL = (
    "position_rule",
    "position_threshold",
    "threshold",
    "counting_threshold",
    "max_objects",
    "max_overlap",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the files and options of each metric."""
    metrics = parser.add_subparsers(dest="metric", required=True, metavar="METRIC")
    dsg, vq2, tifa, gecko, geneval = (metrics.add_parser(name, help=what) for name, what in METRICS.items())
    for against_ratings in (dsg, vq2):
        add = against_ratings.add_argument
        add("--answers", type=Path, required=True, help="CSV of a VQA model's answers")
        add("--likert", type=Path, required=True, help="CSV of people's ratings")
    dsg.add_argument("--dependencies", choices=["direct", "transitive", "none"], default="direct")
    tifa.add_argument("--answers", type=Path, required=True, help="JSON of an evaluation's result")
    gecko.add_argument("--answers", type=Path, required=True, help="JSON Lines: qas, rubric_results")
    add = geneval.add_argument
    add("--cases", type=Path, required=True, help="JSON Lines: metadata and detections")
    what = "as the metric's option; default that of the released code"
    for option in OF_GENEVAL:
        add(f"--{option.replace('_', '-')}", type=json_or_text, default=SUPPRESS, metavar="VALUE", help=what)


def run(arguments: argparse.Namespace) -> int:
    """
    Print the figures as JSON, one object per line.

    Raises:
        UsageFault: a file cannot be used, or a package is not installed.
    """
    given = vars(arguments)
    try:
        from scoregate.replay import ratings, verdicts
    except ModuleNotFoundError as exc:
        ours = str(exc.name).partition(".")[0] == "service"
        package = "the package scoregate-server" if ours else "the extra `evaluate`"
        raise UsageFault(f"replay needs {exc.name}, which {package} of the same checkout brings") from exc
    figures: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    try:
        if arguments.metric == "dsg":
            figures = ratings.dsg(arguments.answers, arguments.likert, arguments.dependencies)
        elif arguments.metric == "vq2":
            figures = ratings.vq2(arguments.answers, arguments.likert)
        elif arguments.metric == "tifa":
            figures = verdicts.tifa(arguments.answers)
        elif arguments.metric == "gecko":
            figures = verdicts.gecko(arguments.answers)
        else:
            options = {name: given[name] for name in OF_GENEVAL if name in given}
            figures = verdicts.geneval(arguments.cases, **options)
    except ValueError as exc:
        raise UsageFault(str(exc)) from exc
    for row in [figures] if isinstance(figures, Mapping) else figures:
        print(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
    return OK
