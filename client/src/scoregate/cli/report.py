"""
`scoregate report`: scores a data set, and draws one page of what the scores say.

Scores a data set like `batch`, or those of several generators, `A=folder B=folder`, and writes one HTML page
about the scores.
"""

import argparse

from scoregate.cli.arguments import (
    NO_SCORE,
    OK,
    add_settings,
    add_values,
    service_of,
    settings_of,
)
from scoregate.report.dataset import PageSettings, report
from scoregate.runs.batch import TIMEOUT_S
from scoregate.text import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, PageSettings)
    add_values(parser)


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some row lacks a score; the page is written in both cases."""
    settings = settings_of(PageSettings, arguments)
    summary = report(settings, service_of(arguments, TIMEOUT_S))
    say(str(settings.out))
    return NO_SCORE if summary.incomplete else OK
