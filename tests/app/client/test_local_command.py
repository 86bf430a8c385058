"""The command without a server: `--local`, and SCOREGATE_LOCAL."""

import json
import shlex
import shutil

import pytest

from demo.samples import FOLDER, listed
from tests.support.benchmarks import SAMPLES
from tests.support.noted_models import LOADED, noted
from tests.support.paths import ROOT
from tests.support.pictures import png
from tests.unit.client.cli.conftest import run

__all__ = ["noted", "run"]

PROFILE = str(ROOT / "loadtest" / "fake.toml")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Two pictures, and a store of question sets."""
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path}/questions.sqlite3")
    (tmp_path / "pictures").mkdir()
    for name in ("red", "lime"):
        (tmp_path / "pictures" / f"{name}.png").write_bytes(png(name))
    return tmp_path / "pictures"


def scored(run, *arguments):
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_command_that_scores_runs_without_a_server(run, tmp_path):
    """One picture, a folder, a ranking, a comparison, questions, and what is served."""
    local, picture = ("--local", PROFILE), "pictures/red.png"

    assert "vqascore" in scored(run, "score", picture, "-p", "a red square", *local)
    assert "red.png" in scored(run, "rank", picture, "pictures/lime.png", "-p", "a red square", *local)
    pair = (picture, "pictures/lime.png", "-p", "a red square", *local)
    assert "WIN RATE" in scored(run, "compare", *pair, "--rubric", "preference", "--schedule", "swiss:1")
    assert "?" in scored(run, "questions", "a red square", *local)
    assert "clipscore" in scored(run, "health", *local)
    scored(run, "batch", "pictures", "-p", "a red square", "-o", "out.jsonl", *local)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert ["lime.png", "red.png"] == sorted(row["image"] for row in rows if row.get("scores"))


def test_pictures_are_compared_by_a_rubric_of_a_file(run, tmp_path):
    """That of the service under another name has the same verdicts."""
    shutil.copy(ROOT / "service" / "metrics" / "rubrics" / "preference.toml", tmp_path / "mine.toml")
    compare = ("compare", "pictures", "-p", "a red square", "--local", PROFILE, "--rubric")

    assert scored(run, *compare, "preference") == scored(run, *compare, "@mine.toml")


def test_a_file_of_policies_decides_without_a_server(run, tmp_path):
    """A picture that cannot be read is rejected; a file without policies ends the command."""
    (tmp_path / "policy.toml").write_text('[policies.show]\naccept = "vqascore >= 0"\n', "utf-8")
    (tmp_path / "pictures" / "broken.png").write_bytes(png()[:40])
    decide = ("decide", "-p", "a red square", "--local", PROFILE)

    assert "accept" in scored(run, *decide, "pictures/red.png", "--policy-file", "policy.toml")
    done = run(*decide, "pictures", "--policy-file", "policy.toml")
    assert 1 == done.returncode
    assert "reject    unreadable: image_undecodable" in done.stdout
    (tmp_path / "policy.toml").write_text("", "utf-8")
    done = run(*decide, "pictures/red.png", "--policy-file", "policy.toml")
    assert 2 == done.returncode
    assert "policy.toml: has no table [policies.NAME]" in done.stderr


def test_the_environment_names_the_models_of_all_commands(run, monkeypatch):
    """An address on the command line comes first."""
    monkeypatch.setenv("SCOREGATE_LOCAL", PROFILE)

    assert "vqascore" in scored(run, "score", "pictures/red.png", "-p", "a red square")
    done = run("score", "pictures/red.png", "-p", "a", "--base-url", "http://127.0.0.1:1", "--timeout", "0.2")
    assert 3 == done.returncode


@pytest.mark.parametrize("service", [("--base-url", "http://127.0.0.1:1"), ("--api-key", "k")])
def test_models_of_this_process_have_no_address_and_no_key(run, service):
    """One of the two is meant."""
    done = run("score", "pictures/red.png", "-p", "a", "--local", PROFILE, *service)

    assert (2, True) == (done.returncode, service[0] in done.stderr)


def test_models_that_cannot_be_loaded_are_a_wrong_call(run):
    """With the reason, in one line."""
    done = run("score", "pictures/red.png", "-p", "a", "--local", "no/such.toml")

    assert 2 == done.returncode
    assert ["no/such.toml" in line for line in done.stderr.splitlines()] == [True]


@pytest.mark.parametrize("page", ["README.md", "docs/reference/cli.md"])
def test_the_command_of_the_page_scores_a_folder(run, tmp_path, page):
    """Each picture has a row, and there is a page of them; with fake models in place of the demo's."""
    shutil.copytree(FOLDER, tmp_path / "demo" / "samples")
    (tmp_path / "build").mkdir()
    text = (ROOT / page).read_text("utf-8")
    [line] = [line for line in text.splitlines() if line.endswith("--local demo") and " batch " in line]
    scored(run, *shlex.split(line)[1:-1], PROFILE)

    rows = (tmp_path / "build" / "scores.jsonl").read_text("utf-8").splitlines()
    assert len(listed()) == len(rows)
    assert "<img" in (tmp_path / "build" / "scores.html").read_text("utf-8")


def test_the_readme_compares_two_generators(run, tmp_path):
    """Of the tables beside the demo's pictures; a page shows the prompts of both."""
    shutil.copytree(FOLDER, tmp_path / "demo" / "samples")
    (tmp_path / "build").mkdir()
    text = (ROOT / "README.md").read_text("utf-8")
    [line] = [line for line in text.splitlines() if line.endswith("--local demo") and " versus " in line]
    done = run(*shlex.split(line)[1:-1], PROFILE)

    assert 0 == done.returncode, done.stderr
    assert "12 of 12 rows have all scores" in done.stderr
    assert "a green circle and a red square" in (tmp_path / "build" / "versus.html").read_text("utf-8")


def test_models_of_other_metrics_are_not_loaded(run, noted, tmp_path):
    """A score, a ranking, a data set and a benchmark load what their metrics may use."""
    of_one = ("pictures/red.png", "-p", "a red square", "--local", noted)
    scored(run, "score", *of_one)
    scored(run, "rank", *of_one, "-m", "clipscore")
    scored(run, "batch", "pictures", "-p", "a", "-o", "out.jsonl", "-m", "clipscore", "--local", noted)

    sample = SAMPLES["geneval2"](tmp_path)
    images = tmp_path / "images"
    images.mkdir()
    for name in ("0.png", "1.png"):
        (images / name).write_bytes(png())
    generator = (str(sample.data), f"a={images}", "-o", str(tmp_path / "of"))
    done = run("bench", "geneval2", *generator, "--local", noted)

    assert 0 == done.returncode, done.stderr
    assert ["vqa", "clip", "clip", "vqa"] == [name for name in LOADED if name != "questions"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("-m", "vqascor"), "no metric vqascor; did you mean vqascore? there are vqascore, "),
        (("--option", "vqascore.outptu=logit"), "no option outptu; did you mean output? vqascore has "),
        (("--option", "vqascore.output=fast"), "vqascore.output: "),
    ],
)
def test_a_wrong_name_is_found_before_models_are_loaded(run, noted, given, why):
    """Of a metric or an option, with the nearest; of a value."""
    done = run("score", "pictures/red.png", "-p", "a red square", "--local", noted, *given)

    assert (2, []) == (done.returncode, LOADED)
    assert why in done.stderr


def test_the_operator_of_a_gate_brings_rubrics(run, tmp_path):
    """With an option's file, though no setting allows them."""
    rubric = ROOT / "service" / "metrics" / "rubrics" / "aesthetics.toml"
    (tmp_path / "mine.toml").write_bytes(rubric.read_bytes())
    given = ("-m", "judge", "--option", "judge.rubric=@mine.toml")

    assert "judge" in scored(run, "score", "pictures/red.png", "-p", "a", "--local", PROFILE, *given)


def test_the_operator_of_a_gate_brings_checklists(run, tmp_path):
    """The questions of a file with their weights and what they add to the score."""
    table = 'questions = ["Is it red?", "Is it round?"]\nweights = [0.5, -0.25]\nintercept = 2\n'
    (tmp_path / "mine.toml").write_text(table, "utf-8")
    given = ("-m", "checklist", "--option", "checklist.checklist=@mine.toml", "--explain")

    printed = scored(run, "score", "pictures/red.png", "-p", "a", "--local", PROFILE, *given)

    rows = [line.split() for line in printed.splitlines() if "Is it " in line]
    assert ["0.5000", "-0.2500"] == [row[-2] for row in rows]
    added = sum(float(row[-1]) for row in rows)
    assert f"checklist {2 + added:.4f}" in printed
    assert "intercept: 2.0000" in printed


def test_a_warning_of_demo_models_stands_once_in_the_commands_form(run):
    """Neither a line of the log nor a library's bar stands before it."""
    done = run("score", "pictures/red.png", "-p", "a red square", "--local", PROFILE)

    [line] = done.stderr.splitlines()
    assert line.startswith("warning: vqa is a demo model: ")


def test_a_policy_decides_about_the_rows_of_a_data_set_without_a_server(run, tmp_path):
    """Its metrics are those of the profile: no other metric limits what is loaded."""
    (tmp_path / "policy.toml").write_text('[policies.show]\naccept = "clipscore >= -100"\n', "utf-8")
    by = ("--policy", "show", "--policy-file", "policy.toml", "--local", PROFILE)
    scored(run, "batch", "pictures", "-p", "a red square", "-o", "out.jsonl", *by)

    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert ["accept", "accept"] == [row["decision"] for row in rows if "decision" in row]


@pytest.mark.parametrize("page", [(), ("page.html", "--results")])
def test_the_suffix_of_the_results_is_checked_before_models_are_loaded(run, noted, page):
    """A file that cannot be written is no reason to load anything, for a page likewise."""
    command = "report" if page else "batch"
    done = run(command, "pictures", "-p", "a red square", "-o", *page, "out.txt", "--local", noted)

    assert (2, []) == (done.returncode, LOADED)
    assert "out.txt: the name of the results must end in" in done.stderr
