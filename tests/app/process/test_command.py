"""The command line: one command with its arguments, and serving without one."""

from pathlib import Path

import pytest

from models.core.contract import CheckpointAway, CheckpointError
from service.core.errors import ModelFault
from service.core.settings import NotYet, SettingsError
from service.process import command
from service.process.command import parser


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


@pytest.mark.parametrize("arguments", [["check"], ["--check"], ["serve"], []])
def test_checking_loads_nothing_and_serving_does(arguments, monkeypatch):
    """With a command and, as ever, without one."""
    done = []
    monkeypatch.setattr(command, "load_models", lambda settings: done.append("loaded"))
    monkeypatch.setattr(command, "serve", lambda settings, load: load() or done.append("served") or 3)
    monkeypatch.setattr(command, "check", lambda settings: done.append("checked") or "")
    status = command.run(parser().parse_args(arguments))

    checks = arguments in (["check"], ["--check"])
    assert (["checked"] if checks else ["loaded", "served"], 0 if checks else 3) == (done, status)


def test_a_profile_that_is_not_there_is_a_sentence():
    """With the profiles there are, and the one that is most like it."""
    with pytest.raises(SettingsError) as refused:
        command.run(parser().parse_args(["check", "--config", "gpu-24g"]))

    said = str(refused.value)
    assert said.startswith(
        "gpu-24g: there is no such file, and no profile of this name; there are demo, geneval,"
    )
    assert said.endswith("; did you mean gpu-24gb?")


def test_a_profile_that_cannot_be_read_says_why_without_a_number(tmp_path):
    """A folder, for example."""
    with pytest.raises(SettingsError, match=r": Is a directory$"):
        command.run(parser().parse_args(["check", "--config", str(tmp_path)]))


@pytest.mark.parametrize(
    "arguments", [["questions"], ["questions", "import"], ["sing"], ["questions", "burn", "x"]]
)
def test_what_is_no_command_ends_with_the_usage(arguments, capsys):
    """And with status 2."""
    with pytest.raises(SystemExit, match="2"):
        parser().parse_args(arguments)

    assert "usage: scoregate-server" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("exc", "status"),
    [
        (NotYet("server.port: taken"), 75),
        (CheckpointAway("models.vqa: the hub is away"), 75),
        (SettingsError("server.port: wrong"), 2),
        (CheckpointError("models.vqa: wrong"), 2),
        (ModelFault("vqa: wrong"), 2),
    ],
)
def test_what_passes_by_itself_has_a_status_of_its_own(exc, status, monkeypatch, capsys):
    """On 75, EX_TEMPFAIL, supervisors start it again; on 2 they do not.  One line either way."""

    def run(arguments):
        raise exc

    monkeypatch.setattr(command, "configure_logging", lambda: None)
    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr("sys.argv", ["scoregate-server"])
    with pytest.raises(SystemExit) as ended:
        command.main()

    assert status == ended.value.code
    assert f"scoregate-server: {exc}\n" == capsys.readouterr().err


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
