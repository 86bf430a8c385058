"""`scoregate score`: pictures and one prompt."""

import argparse
import json
import sys
from pathlib import Path

import scoregate
from scoregate.cli.arguments import add_metrics, connected, metrics_of, options_of, read_pictures
from scoregate.cli.exits import NO_SCORE, OK
from scoregate.cli.explain import explained
from scoregate.cli.text import number, shown, table
from scoregate.cli.warned import warn

HELP = "score pictures against a prompt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("images", type=Path, nargs="+", metavar="IMAGE")
    parser.add_argument("-p", "--prompt", required=True)
    add_metrics(parser, "-o")
    parser.add_argument(
        "--explain",
        action="store_true",
        help="show what each score is made of: questions, answers, probabilities",
    )
    parser.add_argument("--json", action="store_true", help="print the service's answer, unchanged")


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some score is missing."""
    pictures = read_pictures(arguments.images)
    items = [scoregate.Item(prompt=arguments.prompt, image=pictures[path]) for path in arguments.images]
    metrics, options = metrics_of(arguments), options_of(arguments)
    with connected(arguments) as client:
        report = client.score_items(items, metrics, options=options, explain=arguments.explain)
    if arguments.json:
        print(json.dumps(report.raw))
    else:
        print(as_text(report, arguments.images, metrics))
        complain(report, arguments.images)
        warn(report)
    return NO_SCORE if report.partial else OK


def as_text(report: scoregate.Report, paths: list[Path], metrics: list[str]) -> str:
    """Return a table of scores, and their explanations below."""
    rows = [
        [path, *(number(result.scores.get(metric)) for metric in metrics)]
        for path, result in zip(paths, report, strict=True)
    ]
    parts = [table(["PICTURE", *metrics], rows, right=metrics)]
    for path, result in zip(paths, report, strict=True):
        parts += [
            f"{shown(path)}, {metric} {number(result.scores.get(metric))}\n{explained(details)}"
            for metric, details in result.details.items()
        ]
    return "\n\n".join(parts)


def complain(report: scoregate.Report, paths: list[Path]) -> None:
    """Print the missing scores to stderr."""
    for path, result in zip(paths, report, strict=True):
        for metric, error in result.errors.items():
            print(shown(f"{path}: no {metric}: {error.code}: {error.detail}"), file=sys.stderr)
