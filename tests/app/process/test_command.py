"""The command line: one command with its arguments, and serving without one."""

from pathlib import Path

import pytest

from service.process.command import parser
from tests.support.command import server

__all__ = ["server"]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [([], None), (["serve"], "serve"), (["check"], "check"), (["questions", "export", "x"], "questions")],
)
def test_a_profile_is_named_before_a_command_or_behind_it(arguments, name):
    """The same flag in both places; not given, it is none."""
    config = ["--config", "a.toml"]
    places = [arguments, [*config, *arguments], [*arguments, *config]]
    parsed = [parser().parse_args(place) for place in places]

    assert [None, Path("a.toml"), Path("a.toml")] == [each.config for each in parsed]
    assert {name} == {each.command for each in parsed}


def test_a_profile_that_is_not_there_is_a_sentence(server):
    """With the profiles there are, and the one that is most like it."""
    status, _, [said] = server("check", "--config", "gpu-24g")

    assert 2 == status
    assert "gpu-24g: there is no such file, and no profile of this name; there are demo, geneval," in said
    assert said.endswith("; did you mean gpu-24gb?")


def test_a_profile_that_cannot_be_read_says_why_without_a_number(server, tmp_path):
    """A folder, for example."""
    status, _, [said] = server("check", "--config", tmp_path)

    assert (2, True) == (status, said.endswith(": Is a directory"))


@pytest.mark.parametrize(
    "arguments", [["questions"], ["questions", "import"], ["sing"], ["questions", "burn", "x"]]
)
def test_what_is_no_command_ends_with_the_usage(arguments, capsys):
    """And with status 2."""
    with pytest.raises(SystemExit, match="2"):
        parser().parse_args(arguments)

    assert "usage: scoregate-server" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--confg", "demo"], "unrecognized argument: --confg; did you mean --config?"),
        (["serve", "--modle", "a"], "unrecognized argument: --modle; did you mean --model?"),
        (["serve", "--prot=80"], "unrecognized argument: --prot=80; did you mean --port?"),
        (["docter"], "; did you mean doctor?"),
        (["serve", "--dtype", "bfloat"], "; did you mean bfloat16?"),
        (["questions", "exprt", "a.jsonl"], "; did you mean export?"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_nearest(capsys, words, said):
    """In the last line, which names the fault."""
    with pytest.raises(SystemExit):
        parser().parse_args(words)

    assert capsys.readouterr().err.rstrip().endswith(said)
