"""`scoregate batch`: a whole data set, in a file that the next run continues."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from scoregate.cli.arguments import (
    NO_SCORE,
    OK,
    add_settings,
    add_values,
    options_of,
    service_of,
    settings_of,
)
from scoregate.runs.batch import TIMEOUT_S, score_batch, write_filtered
from scoregate.runs.settings import Batch
from scoregate.runs.summary import say_summary
from scoregate.settings import setting, whole


@dataclass(frozen=True, kw_only=True)
class BatchCommand(Batch):
    """Settings of a run, and of a page about its results."""

    html: Path | None = setting(
        "write a page of pictures, the worst first", default=None, metavar="FILE", parse=Path
    )
    html_images: int = setting(
        "pictures on that page at most (default %(default)s)",
        "--html-pictures",
        default=500,
        metavar="N",
        parse=whole,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, BatchCommand)
    add_values(parser)


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some row lacks a score."""
    batch = settings_of(BatchCommand, arguments, options=options_of(arguments))
    outcome = score_batch(batch, service_of(arguments, TIMEOUT_S), page=batch.html)
    again = "" if outcome.out in outcome.files or batch.retry else " with --retry"  # for finished shards
    say_summary(
        outcome.summary, outcome.requested, outcome.out, outcome.left_over, outcome.seconds, again=again
    )
    if batch.html and outcome.files:
        from scoregate.report.sheet import write_sheet

        write_sheet(batch.html, outcome.dataset, outcome.plan, outcome.lines, batch.html_images)
    copied = write_filtered(batch, outcome)
    return OK if outcome.complete and copied else NO_SCORE
