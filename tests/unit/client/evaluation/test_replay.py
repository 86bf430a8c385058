"""`scoregate replay`: published figures, computed from published answers by the folds that `/score` calls."""

import gzip
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
    """The authors print .463/.380 and .464/.378; item tifa160_134, without questions, counts 0."""
    figures = replay(*DSG, "--dependencies", dependencies)

    assert ["spearman", "kendall", "n", "mean", "missing"] == list(figures)
    assert (*expected, 0) == pytest.approx(tuple(figures.values()), abs=1e-6)


def test_mplugs_answers_to_vq2_agree_with_people_as_published(replay):
    """The authors print .212/.164."""
    figures = replay("vq2", "--answers", TIFA160 / "mplug_vq2a.csv.gz", *LIKERT)

    assert (0.212317, 0.163889, 800, 0.68502, 0) == pytest.approx(tuple(figures.values()), abs=1e-6)


def test_rated_pictures_without_answers_are_left_out_and_counted(replay, tmp_path):
    """The published correlation is that of the other generators' pictures, and no 0 stands for a score."""
    rows = gzip.decompress((TIFA160 / "mplug_dsg.csv.gz").read_bytes()).decode().splitlines(keepends=True)
    kept = [row for row in rows if not row.startswith("mini-dalle,")]
    (tmp_path / "answers.csv").write_text("".join(kept), "utf-8")
    people = gzip.decompress((TIFA160 / "likert.csv.gz").read_bytes()).decode().splitlines(keepends=True)
    rated = [row for row in people if not row.startswith("mini-dalle,")]
    (tmp_path / "rated.csv").write_text("".join(rated), "utf-8")

    found = replay("dsg", "--answers", tmp_path / "answers.csv", *LIKERT)
    alone = replay("dsg", "--answers", tmp_path / "answers.csv", "--likert", tmp_path / "rated.csv")

    assert (640, 160) == (found.pop("n"), found.pop("missing"))
    assert (640, 0) == (alone.pop("n"), alone.pop("missing"))
    assert alone == pytest.approx(found)
    assert 0.45 < found["spearman"] < 0.46


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
COLUMNS = "t2i_model,item_id,answer"
RATED = f"{COLUMNS}\nx,a,1\nx,b,5\nx,b,4\n"
WHOLE = HEADER + "x,a,1,0,yes\nx,b,1,0,no\n"


@pytest.mark.parametrize(
    ("answers", "ratings", "line"),
    [
        ("t2i_model,item_id,answer\n", RATED, "has no column question_id"),
        (HEADER + "x,a,1\n", RATED, "line 2 has too few fields"),
        (HEADER + "y,a,1,0,yes\n", RATED, "no rated picture has answers"),
        (HEADER + "x,a,1,0,yes\nx,b,1,0,yes\n", RATED, "all 2 values are 1"),
        (HEADER + "x,a,1,0,yes\nx,a,1,0,no\n", RATED, "line 3: question_id '1' of x/a is there twice"),
        (HEADER + "x,a,01,0,yes\n", RATED, "x/a: question_id '01' is not a number"),
        (HEADER + "x,a,2,1,yes\n", RATED, "x/a: question 2 depends on 1, which has no answer"),
        (f"qg_model,{HEADER}tifa,x,a,1,0,yes\n", RATED, "line 2, column qg_model: 'tifa', and not 'dsg'"),
        (WHOLE, f"{COLUMNS}\nx,a,good\n", "line 2, column answer: 'good' is not a number"),
        (WHOLE, f"{COLUMNS}\nx,a,nan\n", "line 2, column answer: 'nan' is not a number"),
        (WHOLE, f"{COLUMNS}\nx,a,\n", "line 2, column answer: '' is not a number"),
        (WHOLE, f"worker_id,{COLUMNS}\n7,x,a,1\n7,x,a,5\n", "line 3: worker_id '7' of x/a is there twice"),
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


@pytest.mark.parametrize(
    ("answers", "line"),
    [
        (HEADER + "x,a,1,0,yes\nx,b,1,0,no\n", "these are answers to DSG's questions"),
        (f"question,{COLUMNS}\nq,x,a,yes\nq,x,a,no\n", "line 3: question 'q' of x/a is there twice"),
        (f"qg_model,{COLUMNS}\ndsg,x,a,yes\n", "line 2, column qg_model: 'dsg', and not 'vq2a'"),
    ],
)
def test_vq2_refuses_other_answers_than_one_to_each_of_its_questions(refused, tmp_path, answers, line):
    """A file of DSG's answers would give a number that is none of VQ²."""
    (tmp_path / "answers.csv").write_text(answers, "utf-8")
    (tmp_path / "ratings.csv").write_text(RATED, "utf-8")

    files = ("--answers", tmp_path / "answers.csv", "--likert", tmp_path / "ratings.csv")
    assert line in refused("replay", "vq2", *files)


def test_a_picture_or_question_that_an_evaluation_has_twice_is_refused(refused, tmp_path):
    """A parser keeps the last one, and the mean would lack the other."""
    entry = json.dumps(asked("animal", "yes", "yes"))
    file = tmp_path / "result.json"
    for text, key in (
        (f'{{"one": {{"q": {entry}, "q": {entry}}}, "two": {{"q": {entry}}}}}', "'q'"),
        (f'{{"one": {{"q": {entry}}}, "one": {{"q": {entry}}}, "two": {{"q": {entry}}}}}', "'one'"),
    ):
        file.write_text(f'{{"question_details": {text}}}', "utf-8")
        assert f"the key {key} is there twice" in refused("replay", "tifa", "--answers", file)


@pytest.mark.parametrize(
    ("verdicts", "line"),
    [
        (
            "Question: Big?\nVerdict: yes\nQuestion: Big?\nVerdict: no",
            "'big?' has two verdicts: yes and no",
        ),
        ({"Big?": "yes", "big?": "no"}, "'big?' has two verdicts: yes and no"),
        ({"is there another?": "yes"}, "no question of the rubric has a verdict"),
    ],
)
def test_gecko_refuses_two_verdicts_on_a_question_and_a_picture_without_any(
    refused, tmp_path, verdicts, line
):
    """Neither the last verdict nor 0 stands for the picture's score."""
    file = tmp_path / "answers.jsonl"
    picture = {"qas": [{"question": "Big?", "answer": "yes"}], "rubric_results": verdicts}
    file.write_text(json.dumps(picture), "utf-8")

    assert f"line 1: rubric_results: {line}" in refused("replay", "gecko", "--answers", file)


def test_geneval_refuses_a_file_without_cases(refused, tmp_path):
    """An empty answer with status 0 would be taken for one."""
    (tmp_path / "cases.jsonl").touch()

    assert "there is no case" in refused("replay", "geneval", "--cases", tmp_path / "cases.jsonl")


def test_an_evaluation_without_answers_names_the_field(refused, tmp_path):
    """The sample's other file, which has questions only, is such a one."""
    file = tmp_path / "questions.json"
    file.write_text('{"question_details": {"one": {"q": {"answer": "yes"}}}}', "utf-8")

    assert "question_details.one.q.choices: Field required" in refused("replay", "tifa", "--answers", file)


@pytest.mark.parametrize(
    ("missing", "package"),
    [("service.metrics.vq2", "the package scoregate-server"), ("numpy", "the extra `evaluate`")],
)
def test_a_missing_package_is_named(refused, without, missing, package):
    """With the distribution that brings it."""
    without(missing)

    line = refused("replay", "vq2", "--answers", "answers.csv", "--likert", "ratings.csv")
    assert f"scoregate: replay needs {missing}, which {package} of the same checkout brings" == line
