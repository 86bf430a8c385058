"""docs/guides/your-own-judge.md: from a rubric and ten ratings to a threshold."""

import re
import runpy
import shlex
import shutil

import pytest

from demo.samples import FOLDER
from scoregate.cli.main import main
from service.metrics.rubrics.rubric import MAX_CALLS, MAX_OUTPUTS, Rubric, RubricCall, rubric_of
from service.wiring.load import load_settings
from tests.support.packages import files_of
from tests.support.pages import fences, named_rows, page

PAGE = "guides/your-own-judge.md"
RUBRICS = {name: text for name, text in files_of(PAGE).items() if name.startswith("rubrics/")}
[(_, COMMANDS)] = fences(PAGE, "sh")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The samples with the files of the page, as the current folder, and the variables that it exports."""
    folder = tmp_path / "samples"
    shutil.copytree(FOLDER, folder)
    for name, text in files_of(PAGE).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path}/questions.sqlite3")
    for word in shlex.split(COMMANDS.splitlines()[0])[1:]:
        monkeypatch.setenv(*word.split("=", 1))
    return folder


@pytest.mark.filterwarnings("ignore::scoregate.ScoregateWarning")  # it is a demo model
def test_the_commands_lead_from_ratings_to_a_threshold_and_to_a_pair(folder, capsys):
    """With the demo's judge: the correlation and the winner of the page, an interval, a threshold."""
    said = []
    for line in COMMANDS.splitlines()[1:]:
        assert 0 == main(shlex.split(line)[1:])
        said.append(capsys.readouterr().out)
    _, agreed, calibrated, compared = said
    stated = re.search(r"`spearman`, here ([\d.]+),", page(PAGE))[1]
    found = re.search(r"^spearman +([\d.]+)$", agreed, re.MULTILINE)[1]

    assert stated == f"{float(found):.2f}"
    assert re.search(r"^interval\n.*\n(?:.+\n)*spearman +-?[\d.]+, -?[\d.]+$", agreed, re.MULTILINE)
    assert re.search(r"^threshold .*: a picture passes", calibrated, re.MULTILINE)
    assert ["1", "count.png", "1.0000"] == compared.splitlines()[1].split()[:3]


@pytest.mark.filterwarnings("ignore::scoregate.ScoregateWarning")
def test_the_program_prints_the_reason_of_a_grade(folder, capsys):
    runpy.run_path(str(folder / "reasons.py"))
    first, *question = capsys.readouterr().out.splitlines()

    assert re.fullmatch(r"4\.0 \['yes: it is shown with the probability [\d.]+'\]", first)
    assert 'This picture was generated from the text "three yellow stars".' == question[0]
    assert '"why": a text of one line - one sentence about what is wrong' in question


@pytest.mark.filterwarnings("ignore::scoregate.ScoregateWarning")
def test_the_checklist_of_the_demo_has_the_right_answers_and_their_sum(folder, capsys):
    """A green circle and a red square: the weights 0.4, 0.2 and 0.3, and the intercept 0.1."""
    [command] = re.findall(r"^scoregate .*-m checklist.*$", page(PAGE), re.MULTILINE)
    assert 0 == main(shlex.split(command)[1:])
    printed = capsys.readouterr().out

    answers = dict(re.findall(r"(Is there [^?]*)\?.* (yes|no) ", printed))
    yes = {"Is there a circle", "Is there a square", "Is there a red square"}
    no = {"Is there a red circle", "Is there a blue circle"}
    assert answers == dict.fromkeys(yes, "yes") | dict.fromkeys(no, "no")
    assert f"checklist {0.3 - 0.4 - 0.2 + 0.1:.4f}" in printed


def test_the_profile_of_the_page_is_valid(folder):
    settings = load_settings(folder / "judge.toml", {})

    assert ["rubrics"] == [str(path) for path in settings.judge.rubrics]


@pytest.mark.parametrize("name", RUBRICS)
def test_each_rubric_of_the_page_is_one(name):
    """With the range of its formula."""
    ends = {"rubrics/poster.toml": (0, 4), "rubrics/better.toml": (-1, 1), "rubrics/edit.toml": (0, 10)}

    assert ends[name] == rubric_of(name, RUBRICS[name]).bounds


def test_the_page_of_declarations_has_all_fields():
    """Of a rubric, of a call, and the limits on the page of settings."""
    cells = " ".join(cells[0] for cells in named_rows(page("reference/declarations.md")))

    assert {*Rubric.model_fields, *RubricCall.model_fields} <= set(re.findall(r"`(\w+)`", cells))
    assert f"{MAX_CALLS} calls and {MAX_OUTPUTS} outputs" in page("reference/configuration.md")
