"""Entry point of the command `scoregate`."""

import os
import sys
from collections.abc import Sequence
from functools import cache

import scoregate
from scoregate.cli import (
    batch,
    bench,
    calibrate,
    evaluate,
    health,
    models,
    questions,
    rank,
    replay,
    report,
    reproduce,
    score,
    verify,
)
from scoregate.cli.arguments import Parser, add_service
from scoregate.cli.exits import INTERRUPTED, NO_SCORE, OK, USAGE, NoResult, UsageFault, described, exit_code
from scoregate.records import BadInput
from scoregate.text import shown

# A command is a module with HELP, add_arguments(parser) and run(arguments) -> exit code.
COMMANDS = {
    "score": score,
    "rank": rank,
    "questions": questions,
    "batch": batch,
    "calibrate": calibrate,
    "evaluate": evaluate,
    "bench": bench,
    "replay": replay,
    "report": report,
    "reproduce": reproduce,
    "health": health,
    "models": models,
    "verify": verify,
}


@cache
def parser() -> Parser:
    """Return the parser, built once per process, since it has 300 arguments."""
    parser = Parser(prog="scoregate", description="Scores that say how well pictures show their prompts.")
    add_service(parser)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        command = commands.add_parser(
            name, help=module.HELP, description=f"{module.HELP[0].upper()}{module.HELP[1:]}."
        )
        module.add_arguments(command)
        add_service(command)
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code: see `scoregate.cli.exits`."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a terminal may support ASCII only
    arguments = parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (UsageFault, BadInput) as exc:
        return failed(shown(exc), USAGE)
    except OSError as exc:  # a file that was named can't be read or written
        return failed(shown(f"{exc.filename}: {exc.strerror}" if exc.filename else exc), USAGE)
    except NoResult as exc:
        return failed(shown(exc), NO_SCORE)
    except scoregate.ScoregateError as exc:
        return failed(described(exc), exit_code(exc))


def failed(why: str, code: int) -> int:
    """Print one line that says why there is no result."""
    print(f"scoregate: {why}", file=sys.stderr)
    return code
