"""Each command's help has an example, which is a valid call."""

import argparse
import re
import shlex
from collections.abc import Iterator

import pytest

from scoregate.cli.arguments import CommandParser
from scoregate.cli.main import parser

EXAMPLE = re.compile(r"^example:\n  scoregate (.+)$", re.MULTILINE)


def commands(of: CommandParser) -> Iterator[CommandParser]:
    """Yield a parser and those of its commands."""
    yield of
    of.declare()
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from commands(each)


COMMANDS = {each.prog: each for each in commands(parser())}


def test_all_commands_are_walked():
    """Also those of commands."""
    assert {"scoregate score", "scoregate evaluate means", "scoregate bench dpg", "scoregate replay dsg"} < (
        COMMANDS.keys()
    )
    assert len(COMMANDS) > 60


@pytest.mark.parametrize("prog", COMMANDS)
def test_the_help_of_a_command_ends_with_an_example_that_is_a_valid_call(prog, tmp_path, monkeypatch):
    """On a line of its own, so that it can be copied; it is a call of this command."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures" / "sd3").mkdir(parents=True)
    shown = EXAMPLE.search(COMMANDS[prog].format_help())

    assert shown, "there is no example"
    words = shlex.split(shown[1])
    assert words[: len(prog.split()) - 1] == prog.split()[1:]
    assert parser().parse_args(words).run


@pytest.mark.parametrize("prog", COMMANDS)
def test_no_paragraph_of_a_help_stands_twice(prog):
    """The notes of a command follow its options once."""
    paragraphs = [each for each in COMMANDS[prog].format_help().split("\n\n") if len(each) > 40]

    assert len(paragraphs) == len({*paragraphs})
