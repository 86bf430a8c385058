"""The page about the log of decisions: its commands run."""

import json
import re
import shlex
from pathlib import Path

from scoregate.cli.main import main
from tests.support.decision_logs import fill, two_weeks, write
from tests.support.pages import page

EXAMPLE = re.compile(r"^\$ scoregate (.*)$", re.MULTILINE)


def test_the_example_of_the_report_runs(tmp_path, monkeypatch, capsys):
    """Drawn rows are labelled, and the page and the figures have their rates."""
    monkeypatch.chdir(tmp_path)
    names = [write(tmp_path / f"decisions-{replica}.sqlite3", *two_weeks(replica)) for replica in range(2)]
    commands = EXAMPLE.findall(page("operations/decisions-log.md"))
    for command in commands:
        arguments = [each for part in shlex.split(command) for each in (names if "*" in part else [part])]
        assert 0 == main(arguments)
        if "sample" in arguments:
            fill(Path(arguments[arguments.index("-o") + 1]))
    content = json.loads(Path("decisions.json").read_text("utf-8"))

    assert ["sample", "label", "report"] == [command.split()[1] for command in commands]
    assert 200 == content["rates"][0]["labelled"]
    assert 0 < content["rates"][0]["false_accept_rate"] < 1
    assert "Wrong decisions" in Path("decisions.html").read_text("utf-8")
    assert "FALSE ACCEPT RATE" in capsys.readouterr().out
