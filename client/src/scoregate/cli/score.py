"""`scoregate score`: pictures and one prompt."""

import argparse
import json
import sys

import scoregate
from scoregate.cli.arguments import add_metrics, connected, metrics_of, options_of
from scoregate.cli.exits import NO_SCORE, OK
from scoregate.cli.explain import explained
from scoregate.cli.pictures import read_pictures
from scoregate.cli.text import number, shown, table
from scoregate.cli.warned import warn

HELP = "score pictures against a prompt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="a file, a folder or a URL")
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
    names = [name for name, _ in pictures]
    items = [scoregate.Item(arguments.prompt, picture) for _, picture in pictures]
    metrics, options = metrics_of(arguments), options_of(arguments)
    with connected(arguments) as client:
        report = client.score_items(items, metrics, options=options, explain=arguments.explain)
    if arguments.json:
        print(json.dumps(report.raw))
    else:
        print(as_text(report, names, metrics))
        complain(report, names)
        warn(report)
    return NO_SCORE if report.partial else OK


def as_text(report: scoregate.Report, names: list[str], metrics: list[str]) -> str:
    """Return a table of scores, and their explanations below."""
    rows = [
        [name, *(number(result.scores.get(metric)) for metric in metrics)]
        for name, result in zip(names, report, strict=True)
    ]
    parts = [table(["PICTURE", *metrics], rows, right=metrics)]
    for name, result in zip(names, report, strict=True):
        parts += [
            f"{shown(name)}, {metric} {number(result.scores.get(metric))}\n{explained(details)}"
            for metric, details in result.details.items()
        ]
    return "\n\n".join(parts)


def complain(report: scoregate.Report, names: list[str]) -> None:
    """Print the missing scores to stderr."""
    for name, result in zip(names, report, strict=True):
        for metric, error in result.errors.items():
            print(shown(f"{name}: no {metric}: {error.code}: {error.detail}"), file=sys.stderr)
