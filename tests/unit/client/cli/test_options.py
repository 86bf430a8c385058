"""Options that several commands have, each with one meaning: the parsers of all commands are walked."""

import argparse
from collections.abc import Iterator

import pytest

from scoregate.cli.arguments import CommandParser
from scoregate.cli.main import parser


def leaves(of: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The parser of each command that has no commands of its own, by its words."""
    if isinstance(of, CommandParser) and of._declare:
        of._declare(of)
        of._declare = None
    groups = [action for action in of._actions if isinstance(action, argparse._SubParsersAction)]
    for each, its in (pair for group in groups for pair in group.choices.items()):
        yield from leaves(its, f"{name} {each}".strip())
    if not groups:
        yield name, of


@pytest.fixture(scope="module")
def commands():
    """Those of `scoregate`, from a parser of the test's own."""
    return dict(leaves(parser.__wrapped__()))


def having(commands, flag):
    """The options with a flag, by command."""
    return {
        name: action
        for name, of in commands.items()
        for action in of._actions
        if flag in action.option_strings
    }


def test_a_metric_is_named_by_one_option(commands):
    """It is a metric, and in a table the column of its scores; `--value` is another name in one command."""
    named = having(commands, "--metric")

    assert {"score", "batch", "versus", "report", "calibrate", "policy fit", "evaluate means"} <= named.keys()
    assert named == having(commands, "-m")
    assert {"METRIC"} == {action.metavar for action in named.values()}
    assert {"evaluate ordering": named["evaluate ordering"]} == having(commands, "--value")


def test_the_column_of_generators_is_named_by_one_option(commands):
    """In papers a generator is a model; models that score are named by `--local`."""
    named = having(commands, "--generator")

    assert {"report", "evaluate means", "evaluate ordering", "evaluate convergence"} <= named.keys()
    assert named == having(commands, "--model")
    assert {"COLUMN"} == {action.metavar for action in named.values()}


def test_a_metric_may_be_given_several_times_but_where_one_is_needed(commands):
    """Those for one metric are known, and all others may be given several times."""
    several = {
        name
        for name, action in having(commands, "--metric").items()
        if type(action).__name__ == "_AppendAction"
    }

    assert {"rank", "compare", "calibrate", "evaluate ordering"} == having(
        commands, "--metric"
    ).keys() - several


@pytest.mark.parametrize("metrics", [("-m", "a", "-m", "b"), ("-m", "a,b"), ("--metric", "a, b", "-m", "a")])
def test_metrics_with_commas_are_columns_of_a_table(run, tmp_path, metrics):
    """Each has its figures, once."""
    (tmp_path / "t.csv").write_text("a,b,generator,prompt\n1,4,x,p\n3,6,x,q\n")
    done = run("evaluate", "means", "--scores", "t.csv", *metrics, "--format", "csv")

    assert 0 == done.returncode, done.stderr
    assert [1, 1] == [done.stdout.count(figure) for figure in ("a,2.0", "b,5.0")], done.stdout
