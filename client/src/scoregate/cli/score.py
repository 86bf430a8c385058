"""`scoregate score`: pictures and prompts."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence

import scoregate
from scoregate.cli.arguments import add_metrics, connected, metrics_of, options_of
from scoregate.cli.exits import NO_SCORE, OK
from scoregate.cli.explain import explained
from scoregate.cli.pictures import read_pictures
from scoregate.cli.warned import warn
from scoregate.text import number, shown, table

HELP = "score pictures against a prompt, or against each of several"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="a file, a folder or a URL")
    parser.add_argument(
        "-p",
        "--prompt",
        action="append",
        required=True,
        dest="prompts",
        metavar="PROMPT",
        help="may be given several times: each picture is scored against each prompt",
    )
    add_metrics(parser)
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
    pictures, faults = read_pictures(arguments.images)
    prompts = list(dict.fromkeys(arguments.prompts))
    items = [
        scoregate.Item(prompt, picture, orient=arguments.orient)
        for _, picture in pictures
        for prompt in prompts
    ]
    metrics, options = metrics_of(arguments), options_of(arguments)
    with connected(arguments) as client:
        report = client.score_items(items, metrics, options=options, explain=arguments.explain)
    names = [name for name, _ in pictures]
    if arguments.json:
        print(json.dumps(report.raw))
    else:
        print("\n\n".join([*tables(report, names, prompts, metrics), *explanations(report, names, prompts)]))
        complain(report, names, prompts)
        warn(report, places(names, prompts))
    for fault in faults:
        print(shown(fault), file=sys.stderr)
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


def complain(report: scoregate.Report, names: Sequence[str], prompts: Sequence[str]) -> None:
    """Print the missing scores to stderr; metrics with the same error are one line."""
    for place, result in zip(places(names, prompts), report, strict=True):
        lacking = dict[str, list[str]]()
        for metric, error in result.errors.items():
            lacking.setdefault(f"{error.code}: {error.detail}", []).append(metric)
        for why, metrics in lacking.items():
            print(shown(f"{place}: no {', '.join(metrics)}: {why}"), file=sys.stderr)
