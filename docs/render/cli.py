"""`cli.md`: the commands of `scoregate` and `scoregate-server`, as their parsers declare them."""

import argparse
import re
import sys
from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Iterator

from docs.render.markdown import code, join, rest, table
from scoregate.cli import main
from scoregate.cli.arguments import CommandParser
from service.process import command

INTRO = """
# Commands

`scoregate` is the client's command, and `scoregate-server` the service. `--help` prints the same. The
examples with output run in `demo/samples`; the demo models' warnings and the pace are left out.
"""
HEADS = ("argument", "default", "value", "meaning")
EXAMPLE = re.compile(r"^example:\n  (.*)$", re.MULTILINE)
SHARED = "the service"  # the title of the group of options that every command has
SERVER = """
## scoregate-server

`scoregate-server` means `scoregate-server serve`. A profile is a TOML file, or the name of [one that is
shipped](profiles.md).
"""


def page() -> str:
    """Return the page: what all commands have in common, each command, and those of the server."""
    top = main.parser()
    return join(
        INTRO,
        "## Every command",
        rest(main.__doc__),
        arguments(top),
        *(part for name, parser in commands(top) for part in section(name, parser)),
        SERVER,
        arguments(command.parser()),
        *(
            part
            for name, parser in commands(command.parser())
            for part in section(name, parser, "### ", "scoregate-server ")
        ),
    )


def commands(parser: ArgumentParser) -> Iterator[tuple[str, ArgumentParser]]:
    """Yield the commands of a parser by name; their arguments are declared."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, found in action.choices.items():
                if isinstance(found, CommandParser):
                    found.declare()
                yield name, found


def section(name: str, parser: ArgumentParser, heading: str = "## ", before: str = "") -> Iterator[str]:
    """Yield the section of a command and those of its own commands."""
    yield f"{heading}{before}{name}"
    yield " ".join((parser.description or "").split())
    yield example(parser.epilog or "")
    run = parser.get_default("run")
    if heading == "## " and run:
        yield rest(sys.modules[run.__module__].__doc__)
    yield arguments(parser)
    for inner, found in commands(parser):
        yield from section(inner, found, f"#{heading}", f"{before}{name} ")


def example(epilog: str) -> str:
    """Return the example of a command as a block; empty without one."""
    found = EXAMPLE.search(epilog)
    return f"```sh\n{found[1]}\n```" if found else ""


def arguments(parser: ArgumentParser) -> str:
    """Return the table of a parser's arguments, without those of the service for a single command."""
    shared = {
        action for group in parser._action_groups if group.title == SHARED for action in group._group_actions
    }
    rows = [
        row(action, parser)
        for action in parser._actions
        if action.help != SUPPRESS
        and not isinstance(action, argparse._SubParsersAction | argparse._HelpAction)
        if action not in shared or not parser.prog.partition(" ")[2]
    ]
    return table(HEADS, rows)


def row(action: Action, parser: ArgumentParser) -> list[str]:
    """Return the row of an argument."""
    formatter = parser._get_formatter()
    shown = (
        ""
        if action.default in (None, SUPPRESS, False, "") or action.default == [] or action.default == {}
        else code(str(action.default))
    )
    if action.required:
        shown = "required"
    value = (
        formatter._format_args(action, formatter._get_default_metavar_for_optional(action))
        if action.nargs != 0
        else ""
    )
    names = (
        code(*action.option_strings) if action.option_strings else code(str(action.metavar or action.dest))
    )
    kind = (
        code(value)
        if value and action.option_strings
        else ", ".join(code(str(each)) for each in action.choices or ())
    )
    return [names, shown, kind, formatter._expand_help(action) if action.help else ""]
