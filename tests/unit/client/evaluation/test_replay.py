"""`scoregate replay`: published figures, computed from published answers by the folds that `/score` calls."""

import json

import pytest

from scoregate.cli.main import main
from tests.support.paths import GOLDEN

TIFA160 = GOLDEN / "tifa160"
LIKERT = ("--likert", TIFA160 / "likert.csv.gz")
DSG = ("dsg", "--answers", TIFA160 / "mplug_dsg.csv.gz", *LIKERT)


@pytest.fixture
def replay(capsys):
    """The figures that the command prints."""

    def replay(*arguments):
        assert 0 == main(["replay", *map(str, arguments)])
        return json.loads(capsys.readouterr().out)

    return replay


@pytest.mark.parametrize(
    ("dependencies", "expected"),
    [
        ("direct", (0.462999, 0.379953, 800, 0.897423)),
        ("transitive", (0.461042, 0.378281, 800, 0.895608)),
        ("none", (0.463581, 0.377646, 800, 0.931678)),
    ],
)
def test_mplugs_answers_to_dsg_agree_with_people_as_published(replay, dependencies, expected):
    """The authors print .463/.380 and .464/.378; item tifa160_134, without answers, counts 0."""
    figures = replay(*DSG, "--dependencies", dependencies)

    assert ["spearman", "kendall", "n", "mean"] == list(figures)
    assert expected == pytest.approx(tuple(figures.values()), abs=1e-6)


def test_mplugs_answers_to_vq2_agree_with_people_as_published(replay):
    """The authors print .212/.164."""
    figures = replay("vq2", "--answers", TIFA160 / "mplug_vq2a.csv.gz", *LIKERT)

    assert (0.212317, 0.163889, 800, 0.68502) == pytest.approx(tuple(figures.values()), abs=1e-6)


def asked(kind, expected, answer, **more):
    return {
        "choices": ["yes", "no", "2"],
        "answer": expected,
        "element_type": kind,
        "multiple_choice_vqa": answer,
        **more,
    }


def test_a_tifa_evaluation_comes_out_as_it_is_published(replay, tmp_path):
    """In the shape of the released sample: means by picture and by type, and what each question counts."""
    details = {
        "one": {"is this a dog?": asked("animal", "yes", "yes", free_form_vqa="yes")},
        "two": {
            "is this a cat?": asked("animal", "yes", "no"),
            "how many?": asked("counting", "2", "2"),
            "is it red?": asked("color", "yes", "yes"),
            "is it blue?": asked("color", "no", "yes"),
        },
    }
    file = tmp_path / "result.json"
    file.write_text(json.dumps({"question_details": details}), "utf-8")
    figures = replay("tifa", "--answers", file)

    assert (0.75, 0.5**2.5 * 2) == pytest.approx((figures["tifa_average"], figures["tifa_stdev"]))
    assert {"animal": 0.5, "counting": 1, "color": 0.5} == figures["accuracy_by_type"]
    assert {"one": 1, "two": 0.5} == figures["caption_scores"]
    first, second = figures["question_details"].values()
    assert {"is this a dog?": {**details["one"]["is this a dog?"], "scores": 1}} == first
    assert [0, 1, 1, 0] == [one["scores"] for one in second.values()]


RUBRIC = [
    ("Is there a teddy bear?", "Object"),
    ("Is there a skateboard?", "Object"),
    ("Does it ride?", "Action"),
]
VERDICTS = [
    {"is there a teddy bear?": "yes", "is there a skateboard?": "no", "does it ride?": "No."},
    "<question>\nQuestion: Is there a teddy bear?\nVerdict: yes\n</question>\n"
    "<question>\nQuestion: Does it ride?\nVerdict: no\n</question>",
]


@pytest.mark.parametrize(("verdicts", "missing"), [(VERDICTS[0], 0), (VERDICTS[1], 1)])
def test_geckos_verdicts_give_the_score_of_its_notebook(replay, tmp_path, verdicts, missing):
    """The worked example there: a third, a half for objects and 0 for the action; no verdict counts 0."""
    qas = [{"question": text, "answer": "yes", "question_type": kind} for text, kind in RUBRIC]
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps({"prompt": "a teddy bear", "qas": qas, "rubric_results": verdicts}), "utf-8")

    figures = replay("gecko", "--answers", file)

    assert 1 / 3 == pytest.approx(figures["mean"])
    assert {"Object": 0.5, "Action": 0} == figures["accuracy_by_type"]
    assert (1, missing, [figures["mean"]]) == (figures["n"], figures["missing"], figures["scores"])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "there is no picture"),
        ('{"qas": []}', "line 1: qas: List should have"),
        ("{", "line 1: the line: "),
    ],
)
def test_a_file_without_verdicts_is_refused(refused, tmp_path, text, line):
    """With line and field."""
    file = tmp_path / "answers.jsonl"
    file.write_text(text, "utf-8")

    assert line in refused("replay", "gecko", "--answers", file)


HEADER = "t2i_model,item_id,question_id,dependency_id,answer\n"
RATED = "t2i_model,item_id,answer\nx,a,1\nx,b,5\nx,b,4\n"


@pytest.mark.parametrize(
    ("answers", "ratings", "line"),
    [
        ("t2i_model,item_id,answer\n", RATED, "has no column question_id"),
        (HEADER + "x,a,1\n", RATED, "line 2 has too few fields"),
        (HEADER + "y,a,1,0,yes\n", RATED, "no rated picture has answers"),
        (HEADER + "x,a,1,0,yes\nx,b,1,0,yes\n", RATED, "all 2 values are 1"),
        (HEADER + "x,a,1,0,yes\nx,b,1,0,no\n", "t2i_model,item_id,answer\nx,a,good\n", "good"),
    ],
)
def test_files_that_give_no_number_are_refused(refused, tmp_path, answers, ratings, line):
    """One line and status 2, and never NaN."""
    for name, text in (("answers.csv", answers), ("ratings.csv", ratings)):
        (tmp_path / name).write_text(text, "utf-8")

    said = refused(
        "replay", "dsg", "--answers", tmp_path / "answers.csv", "--likert", tmp_path / "ratings.csv"
    )
    assert line in said


def test_an_evaluation_without_answers_names_the_field(refused, tmp_path):
    """The sample's other file, which has questions only, is such a one."""
    file = tmp_path / "questions.json"
    file.write_text('{"question_details": {"one": {"q": {"answer": "yes"}}}}', "utf-8")

    assert "question_details.one.q.choices: Field required" in refused("replay", "tifa", "--answers", file)


@pytest.mark.parametrize(
    ("missing", "package"),
    [("service.metrics.vq2", "the package scoregate-server"), ("scipy", "the extra `evaluate`")],
)
def test_a_missing_package_is_named(refused, without, missing, package):
    """With the distribution that brings it."""
    without(missing)

    line = refused("replay", "vq2", "--answers", "answers.csv", "--likert", "ratings.csv")
    assert f"scoregate: replay needs {missing}, which {package} of the same checkout brings" == line
