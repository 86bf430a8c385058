"""
Entry point of the command `scoregate`.

The command is part of the Python client. Its extras are `parquet`, `plot`, `ray-data` for a cluster, and
`evaluate`, which the commands evaluate, bench, replay, versus and report need.

The address of the service is `--base-url`, else `SCOREGATE_BASE_URL`, else `http://127.0.0.1:8000`; several
have commas between them, and `unix:/PATH` is a Unix socket. The key is `SCOREGATE_API_KEY`, or `--api-key`,
which other users of the machine can see. `--timeout SECONDS` is for one request with its retries: 60 s, for
`batch` 600 s, for `health` 10 s. `--json` prints JSON.

`--local NAME` loads models into the command's own process, in place of a service: `demo`, a profile, or
models as `scoregate-server serve --model` takes them, one `--local` for each. `SCOREGATE_LOCAL` names them
for all commands, with spaces between. It needs the server's package in the same environment. The models of
the call's metrics alone are loaded, after their names and options are checked; a terminal shows which.
`--option judge.rubric=@FILE.toml` needs no setting here.

```sh
scoregate batch demo/samples -p "a red circle" -o build/scores.jsonl --html build/scores.html --local demo
```

In all commands, `-m METRIC` (`--metric`) is a metric, or in tables the column of its scores, and `-m a,b` is
`-m a -m b`. `--generator COLUMN` (`--model`) is the column of the generators. Options of metrics are given
one by one (`--option vqascore.output=logit`, of an output `--option judge.faithful.rubric=poster`,
the table of a file `--option judge.rubric=@poster.toml`), or as JSON with `--options`. Warnings are lines on
stderr; with `--strict` each is an error instead of the score. Results go to stdout, and everything else to
stderr; with `--quiet` that is errors alone.

Exit status:

* 0: success.
* 1: a requested score is missing, or no threshold meets the target. `health`: not ready. `verify`: a score or
  an order does not hold, or nothing was checked. `reproduce`: a score differs, or its row is gone.
* 2: the command or its input is wrong. Also: a wrong key, an unknown metric, scores that are all equal, a
  replaced model.
* 3: the service cannot be reached, or has no room now. Try again later.
* 130: Ctrl-C. `batch` and `report` keep the scores so far.
"""

import argparse
import atexit
import errno
import gc
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from itertools import chain

import scoregate
from scoregate.cli.arguments import (
    INTERRUPTED_STATUS,
    NO_SCORE,
    OK,
    USAGE,
    CommandParser,
    CommandText,
    UsageError,
    add_commands,
    add_service,
    column_options,
    described,
    example_of,
    exit_code,
    with_flags,
    with_notes,
)
from scoregate.errors import InputError, NoColumnError, NoResultError
from scoregate.text import VERBOSITY, complain, meant_file, say, shown

# A command is a module of this folder with add_arguments(parser) and run(arguments) -> exit code.
COMMANDS = {
    "score": CommandText(
        "score pictures against a prompt, or against each of several", 'photo.png -p "a red cup" -m vqascore'
    ),
    "rank": CommandText(
        "order pictures of a prompt, the best first", 'a.png b.png c.png -p "a red cup" --top-k 1'
    ),
    "decide": CommandText(
        "accept, review or reject pictures by a policy of the service", 'photos -p "a red cup" --policy show'
    ),
    "compare": CommandText(
        "compare pictures of a prompt in pairs, the strongest first", 'a.png b.png c.png -p "a red cup"'
    ),
    "questions": CommandText(
        "show the questions about prompts, and store them for scoring", '"a red cup on a blue table"'
    ),
    "batch": CommandText(
        "score a data set; run it again to continue, and to retry rows with errors",
        'photos -p "a red cup" -o scores.jsonl',
    ),
    "calibrate": CommandText(
        "choose a threshold from scores: for a pass rate, another"
        " model's, or with labels a false-accept rate",
        "scores.jsonl --label good --false-accept-rate 0.01",
    ),
    "evaluate": CommandText(
        "compare metrics, generators and raters, from tables of scores and ratings",
        "agreement --scores scores.jsonl -m vqascore --human rating",
    ),
    "bench": CommandText(
        "print a benchmark's tables, from your copy of its data and scores",
        "dpg dpg_bench.csv sd3=pictures/sd3",
    ),
    "replay": CommandText(
        "compute published figures from published answers, with the code that the service scores with",
        "tifa --answers result.json",
    ),
    "decisions": CommandText(
        "export, erase, label and sample the decisions in logs of the service",
        "export decisions.sqlite3 -o decisions.csv",
    ),
    "policy": CommandText(
        "try a new policy on logged decisions, or fit one to labelled scores",
        "try policies.toml decisions.sqlite3",
    ),
    "versus": CommandText(
        "compare generators on the same prompts: means, differences, wins, and a page side by side",
        "A=pictures/a B=pictures/b --prompts prompts.jsonl --html versus.html",
    ),
    "report": CommandText(
        "score a data set, and draw a page: means, skills,"
        " generators, people's ratings, the worst pictures, cost",
        "rows.jsonl -m vqascore -o report.html",
    ),
    "open": CommandText("draw the page of a result, and show it in a browser", "scores.jsonl"),
    "reproduce": CommandText(
        "score a data set again as its manifest says, and show what differs", "scores.jsonl.manifest.json"
    ),
    "sizing": CommandText(
        "compute how long a data set takes on some GPUs, and what it costs",
        "clip-flant5-xl --pictures 1e6 --cards 8 --card H100",
    ),
    "health": CommandText(
        "say whether the service is ready, and which models it has", "--base-url http://127.0.0.1:8000"
    ),
    "metrics": CommandText("list the metrics, what each needs, and their options with defaults", "vqascore"),
    "models": CommandText(
        "list the models, or offload, unload or load one, by a key with the right `models`", "offload vqa"
    ),
    "verify": CommandText(
        "compare the scores of known pictures with shipped or published ones",
        "--base-url http://127.0.0.1:8000",
    ),
}


@cache
def parser() -> CommandParser:
    """Return the parser of all commands."""
    parser = CommandParser(
        prog="scoregate",
        description="Scores that say how well pictures show their prompts.",
        epilog=with_notes(
            example_of("scoregate", f"score {COMMANDS['score'].example} --local demo"), __doc__
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_service(parser)
    add_commands(parser, "command", COMMANDS, declare, "COMMAND")
    return parser


def declare(name: str, parser: argparse.ArgumentParser) -> None:
    """Import a command and declare its arguments.  Raises `UsageError` if a package is missing."""
    try:
        module = import_module(f"scoregate.cli.{name}")
    except ModuleNotFoundError as exc:
        raise UsageError(
            f"{name} needs {exc.name}: pip install './client[evaluate]' in a checkout of Scoregate"
        ) from exc
    module.add_arguments(parser)
    add_service(parser)
    parser.epilog = with_notes(parser.epilog or "", module.__doc__)
    parser.set_defaults(run=module.run)


def main(argv: Sequence[str] | None = None) -> int:
    """
    Return the exit code: see `scoregate.cli.arguments`.

    Args:
        argv: by default those of this process, which ends at once after Ctrl-C.
    """
    if argv is None:
        atexit.register(shorten_exit)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a terminal may support ASCII only
    try:
        arguments = parser().parse_args(argv)
        with messages(quiet=getattr(arguments, "quiet", False)):
            code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        if argv is None:
            end_at_once()
        return INTERRUPTED_STATUS
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except NoColumnError as exc:
        named = with_setting(exc, column_options(arguments))
        return failed(shown(with_flags(named, arguments)), USAGE)
    except InputError as exc:
        return failed(shown(with_flags(exc, arguments)), USAGE)
    except UsageError as exc:
        return failed(shown(exc), USAGE)
    except NoResultError as exc:
        return failed(shown(with_flags(exc, arguments)), NO_SCORE)
    except scoregate.ScoregateError as exc:  # before OSError, which the service's absence is, too
        return failed(described(with_flags(exc, arguments)), exit_code(exc))
    except OSError as exc:  # a file that was named can't be read or written
        near = meant_file(exc.filename) if exc.filename and exc.errno == errno.ENOENT else ""
        return failed(shown(f"{exc.filename}: {exc.strerror}{near}" if exc.filename else exc), USAGE)


def shorten_exit() -> None:
    """
    Leave all objects out of the interpreter's last collection, which would visit all that torch has imported.

    Triton's bindings print each object that no collection has freed, so with Triton there is one.
    """
    if "triton" not in sys.modules:
        gc.freeze()


def end_at_once() -> None:
    """End the process without a wait for its threads: one that loads a model cannot be interrupted."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the pipe may be closed
            stream.flush()
    os._exit(INTERRUPTED_STATUS)


def with_setting(fault: NoColumnError, settings: Mapping[str, Sequence[str]]) -> NoColumnError:
    """Return the error with the setting that names the column; *settings* name columns."""
    if fault.setting:
        return fault
    setting = next((name for name, columns in settings.items() if fault.column in columns), "")
    taken = fault.taken | {*chain.from_iterable(settings.values())}
    return NoColumnError(fault.place, fault.column, fault.names, setting, taken, fault.note)


class Kept(logging.Handler):
    """Keep the warnings of models in this process, each once; print graver records."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.warnings: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep or print one record."""
        if record.levelno > logging.WARNING:
            complain(f"scoregate: {record.getMessage()}")
        else:
            self.warnings[record.getMessage()] = None


@contextmanager
def messages(*, quiet: bool) -> Iterator[None]:
    """
    Print the warnings that are logged while the context is open at its end, as the command's own.

    Args:
        quiet: print errors alone to stderr meanwhile.
    """
    kept, logger = Kept(), logging.getLogger("scoregate")
    logger.addHandler(kept)
    propagated, logger.propagate = logger.propagate, False
    before, VERBOSITY.quiet = VERBOSITY.quiet, quiet
    try:
        yield
    finally:
        logger.propagate = propagated
        logger.removeHandler(kept)
        for text in kept.warnings:
            say(f"warning: {text}")
        VERBOSITY.quiet = before


def failed(why: str, code: int) -> int:
    """Print one line that says why there is no result."""
    complain(f"scoregate: {why}")
    return code
