"""
`scoregate decisions`: logs of decisions, exported, erased, labelled, sampled for labels, and reported.

The commands read the files directly, and take several of them, `decisions-*.sqlite3`. The service may run
meanwhile.

* **`export`** adds `labels`, the number of labels of a row in any of the files, and `good`, the share of
  good ones.
* **`erase`** erases decisions with their labels and samples, and removes their content from the write-ahead
  log too. With status 1 another process still reads the old content: run it again.
* **`sample`** takes as many rows of each decision, or all of a rare one. The probability of each row is
  stored in `samples` with the id of the drawing: estimates weight a row by its inverse.
* **`report`** prints tables, or draws them as one page without scripts, as private as the log.

What the report has:

* **Decisions**: counts and shares by policy and day (UTC), the share decided without a score, and the
  audits.
* **Wrong decisions**: the false-accept rate is the share of bad pictures that were accepted, the
  false-reject rate the share of good ones that were rejected, with 95 % intervals, for each drawing. Other
  labels are only counted: they are no random sample. The rates are Hajek's estimates: a labelled row counts
  by the inverse of its probability, and of the share of drawn rows with a label. Intervals are of 1,000
  drawings of the labelled rows of each decision.
* **Drift**: later scores against those of the policy's first seven days, or of `--reference FROM:TO`: the
  population stability index, over bins that end at the deciles of the reference, and the distance of
  Kolmogorov and Smirnov. With few scores the index is above 0 by chance; ten are the least reference. A
  metric that was not computed for every row of the policy's id is compared by complete audits, since
  skipping selects.
* **Nearest to another decision**: the twenty accepted pictures with the lowest margin, and the twenty
  rejected with the highest: the least difference in the comparisons of `because`.
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

from scoregate.cli.arguments import (
    NO_SCORE,
    OK,
    CommandText,
    UsageError,
    add_commands,
    add_settings,
    settings_of,
)
from scoregate.decisions.erasure import EraseSettings, erase
from scoregate.decisions.export import ExportSettings, export
from scoregate.decisions.labels import LabelSettings, SampleSettings, label, sample
from scoregate.report.decisions.settings import ReportSettings
from scoregate.text import complain, say

MAX_NAMED_IDS = 5  # unknown ids that are printed


def run_export(settings: ExportSettings) -> int:
    """Print the number of rows on stderr."""
    say(f"{export(settings)} decisions")
    return OK


def run_erase(settings: EraseSettings) -> int:
    """Print the number of rows."""
    print(f"{erase(settings)} decisions erased")
    return OK


def run_label(settings: LabelSettings) -> int:
    """Print the number of labels, and ids that no log has."""
    done = label(settings)
    print(f"{done.stored} labels stored; {done.empty} rows without a label")
    if done.unknown:
        names = ", ".join(done.unknown[:MAX_NAMED_IDS]) + ", …" * (len(done.unknown) > MAX_NAMED_IDS)
        complain(f"scoregate: no log has {len(done.unknown)} of the ids: {names}")
    return NO_SCORE if done.unknown else OK


def run_sample(settings: SampleSettings) -> int:
    """Print the number of rows of each decision."""
    for decision, (drawn, of) in sample(settings).items():
        print(f"{decision}: {drawn} of {of}")
    return OK


def run_report(settings: ReportSettings) -> int:
    """Print the figures, and write the page."""
    try:  # the other commands need none of the packages
        from scoregate.report.decisions.page import as_text, report
    except ModuleNotFoundError as exc:
        extra = "pip install './client[evaluate]' in a checkout of Scoregate"
        raise UsageError(f"decisions report needs {exc.name}: {extra}") from exc
    content = report(settings)
    if settings.html:
        say(str(settings.html))
    print(as_text(content))
    return OK


class Command(NamedTuple):
    """A command: what it does, the words of an example, its settings, and its function."""

    help: str
    example: str
    settings: type
    run: Callable[[Any], int]


COMMANDS = {
    "export": Command(
        "write the rows to a table", "decisions.sqlite3 -o decisions.csv", ExportSettings, run_export
    ),
    "erase": Command(
        "erase the rows of a caller, a picture or a decision",
        "decisions.sqlite3 --caller user-7",
        EraseSettings,
        run_erase,
    ),
    "label": Command(
        "store people's labels of decisions", "decisions.sqlite3 labels.csv", LabelSettings, run_label
    ),
    "sample": Command(
        "draw rows for labels, as many of each decision",
        "decisions.sqlite3 -n 100 -o labels.csv",
        SampleSettings,
        run_sample,
    ),
    "report": Command(
        "print shares, latency, error rates from labels, and drift, or draw them",
        "decisions.sqlite3 --html decisions.html",
        ReportSettings,
        run_report,
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    texts = {name: CommandText(each.help, each.example) for name, each in COMMANDS.items()}
    add_commands(parser, "action", texts, declare, "ACTION")


def declare(name: str, parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of one command."""
    add_settings(parser, COMMANDS[name].settings)


def run(arguments: argparse.Namespace) -> int:
    """Run one command."""
    command = COMMANDS[arguments.action]
    return command.run(settings_of(command.settings, arguments))
