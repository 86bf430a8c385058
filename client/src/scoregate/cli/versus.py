"""`scoregate versus`: generators on the same prompts, scored and compared in pairs."""

import argparse

from scoregate.cli.arguments import (
    NO_SCORE,
    OK,
    add_settings,
    add_values,
    service_of,
    settings_of,
)
from scoregate.formats import FORMATS
from scoregate.report.pairs import missing_lines
from scoregate.report.versus import JSON_FORMAT, VersusSettings, compare_generators
from scoregate.runs.batch import TIMEOUT_S
from scoregate.text import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, VersusSettings)
    add_values(parser)
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--format", choices=(*FORMATS, JSON_FORMAT), default="text", help="print a table, or JSON"
    )
    forms.add_argument("--json", action="store_const", const=JSON_FORMAT, dest="format", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if a score is missing; the figures are printed in both cases."""
    settings = settings_of(VersusSettings, arguments)
    outcome = compare_generators(settings, service_of(arguments, TIMEOUT_S))
    say(*(f"missing: {line}" for line in missing_lines(outcome.missing)))
    print(outcome.text(arguments.format))
    if settings.html:
        say(str(settings.html))
    return OK if outcome.complete else NO_SCORE
