"""docs/guides/your-own-judge.md: from a rubric and ten ratings to a threshold."""

import json
import re
import runpy
import shlex

import pytest

from scoregate.cli.main import main
from service.metrics.rubrics.rubric import MAX_CALLS, MAX_OUTPUTS, Rubric, RubricCall, rubric_of
from service.wiring.load import load_settings
from tests.support.packages import FAKES, files_of, served
from tests.support.pages import fences, named_rows, page
from tests.support.pictures import png

PAGE = "guides/your-own-judge.md"
RUBRICS = {name: text for name, text in files_of(PAGE).items() if name.startswith("rubrics/")}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service with the rubrics of the page, whose model writes answers of the form."""
    folder = tmp_path_factory.mktemp("judge")
    (folder / "rubrics").mkdir()
    for name, text in RUBRICS.items():
        (folder / name).write_text(text, "utf-8")
    with served(folder, FAKES, SCOREGATE_JUDGE__RUBRICS=json.dumps([f"{folder}/rubrics"])) as client:
        yield client


@pytest.fixture
def folder(tmp_path, monkeypatch, service):
    """The files of the page with ten pictures, as the current folder."""
    for name, text in files_of(PAGE).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    for number in range(1, 11):
        (tmp_path / f"{number:02}.png").write_bytes(png((20 * number, 0, 0)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOREGATE_BASE_URL", str(service.base_url))
    return tmp_path


def test_the_commands_lead_from_ratings_to_a_threshold(folder, capsys):
    """Scores of the rubric and of two outputs, an agreement with its interval, and the threshold."""
    [(_, commands)] = fences(PAGE, "sh")
    graded, agreed, calibrated = (shlex.split(line)[1:] for line in commands.splitlines())

    assert 0 == main(graded)
    rows = [json.loads(line) for line in (folder / "grades.jsonl").read_text("utf-8").splitlines()]
    assert 10 == len(rows)
    assert all({"judge", "judge.faithful", "judge.legible"} == row["scores"].keys() for row in rows)
    for scores in (row["scores"] for row in rows):
        assert scores["judge"] == pytest.approx(scores["judge.faithful"] / 4 * scores["judge.legible"])
    capsys.readouterr()

    assert 0 == main(agreed)
    said = capsys.readouterr().out
    assert re.search(r"^spearman +-?[\d.]+$", said, re.MULTILINE)
    assert re.search(r"^interval\n.*\n(?:.+\n)*spearman +-?[\d.]+, -?[\d.]+$", said, re.MULTILINE)
    assert 0 == main([*agreed, "--metric", "judge.faithful", "--metric", "judge.legible"])
    assert re.search(r"^judge\.faithful +judge\.legible +spearman +", capsys.readouterr().out, re.MULTILINE)

    assert 0 == main(calibrated)
    assert re.search(r"^threshold .*: a picture passes", capsys.readouterr().out, re.MULTILINE)


def test_the_program_prints_the_reason_of_a_grade(folder, capsys):
    runpy.run_path(str(folder / "reasons.py"))
    first, *question = capsys.readouterr().out.splitlines()

    assert re.fullmatch(r"[\d.]+ \['reason [\d.]+'\]", first)
    assert 'This poster was generated from the text "a jazz poster with the word BLUE".' == question[0]
    assert '"why": a text of one line - one sentence about what is wrong' in question


def test_the_profile_of_the_page_is_valid(folder):
    settings = load_settings(folder / "judge.toml", {})

    assert ["rubrics"] == [str(path) for path in settings.judge.rubrics]


@pytest.mark.parametrize("name", RUBRICS)
def test_each_rubric_of_the_page_is_one(name):
    """With the range of its formula."""
    ends = {"rubrics/poster.toml": (0, 1), "rubrics/edit.toml": (0, 10)}

    assert ends[name] == rubric_of(name, RUBRICS[name]).bounds


def test_the_page_of_declarations_has_all_fields():
    """Of a rubric, of a call, and the limits on the page of settings."""
    cells = " ".join(cells[0] for cells in named_rows(page("reference/declarations.md")))

    assert {*Rubric.model_fields, *RubricCall.model_fields} <= set(re.findall(r"`(\w+)`", cells))
    assert f"{MAX_CALLS} calls and {MAX_OUTPUTS} outputs" in page("reference/configuration.md")
