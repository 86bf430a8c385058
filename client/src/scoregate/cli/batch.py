"""`scoregate batch`: a whole data set, in a file that the next run continues."""

import argparse

from scoregate.cli.arguments import (
    NO_SCORE,
    OK,
    add_settings,
    add_values,
    options_of,
    service_of,
    settings_of,
)
from scoregate.report.sheet import Sheet, write_sheet
from scoregate.runs.batch import TIMEOUT_S, Batch, score_batch, write_filtered
from scoregate.runs.summary import say_summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, Batch)
    add_values(parser)
    add_settings(parser, Sheet)


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some row lacks a score."""
    batch, sheet = settings_of(Batch, arguments, options=options_of(arguments)), settings_of(Sheet, arguments)
    outcome = score_batch(batch, service_of(arguments, TIMEOUT_S), page=sheet.html)
    say_summary(outcome.summary, outcome.requested, outcome.out, outcome.left_over)
    if sheet.html and outcome.files:
        write_sheet(sheet.html, outcome.dataset, outcome.plan, outcome.lines, sheet.html_pictures)
    copied = write_filtered(batch, outcome)
    return OK if outcome.complete and copied else NO_SCORE
