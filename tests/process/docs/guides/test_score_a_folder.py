"""docs/guides/score-a-folder.md: its command and its program score the rows of its table."""

import json
import runpy
import shlex
import shutil

import pytest

from demo.samples import FOLDER
from scoregate.cli.main import main
from tests.support.packages import files_of
from tests.support.pages import fences

PAGE = "guides/score-a-folder.md"


@pytest.fixture
def folder(tmp_path, monkeypatch, fake_service):
    """The samples with the page's table, as the current folder."""
    folder = tmp_path / "samples"
    shutil.copytree(FOLDER, folder)
    for name, text in files_of(PAGE).items():
        (folder / name).write_text(text, "utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SCOREGATE_BASE_URL", fake_service.url)
    return folder


def test_each_row_has_a_line_with_the_fields_of_the_page(folder):
    """A row whose picture is missing has its error and no score, and the command says so by its status."""
    [(_, command)] = fences(PAGE, "sh")
    [shown] = [json.loads(text) for name, text in fences(PAGE, "json") if not name]

    assert 1 == main(shlex.split(command)[1:])
    lines = [json.loads(line) for line in (folder / "scores.jsonl").read_text("utf-8").splitlines()]

    assert [1, 2, 3] == [line["row"] for line in lines]
    assert all({"vqascore", "clipscore"} == line["scores"].keys() for line in lines[:2])
    assert shown.keys() <= lines[1].keys()
    assert not lines[2]["scores"]
    assert "unreadable_row" == lines[2]["errors"]["vqascore"]["code"]
    assert {"sheet.html", "scores.jsonl.manifest.json"} <= {path.name for path in folder.iterdir()}


def test_the_data_set_is_scored_from_a_program(folder, capsys):
    """Into the file of the command, which then has nothing to score but the row that failed."""
    runpy.run_path(str(folder / "score_table.py"))
    first, *shown = capsys.readouterr().out.splitlines()
    [(_, command)] = fences(PAGE, "sh")
    main(shlex.split(command)[1:])

    assert "2 of 3 rows have all scores" == first
    assert ["presence.jpg", "count.png", "missing.png"] == [line.split()[0] for line in shown]
    assert "0 were requested in this run" in capsys.readouterr().err
