"""Answers about pictures: those that are missing, empty or about one picture twice, and means of several."""

import json

import pytest

from scoregate.bench.answers import BenchmarkItem, images_in
from tests.unit.client.bench.test_dpg import row


@pytest.fixture
def dpg(bench, written):
    """The row of a generator with these answers to a question, each about an item of its own."""

    def dpg(answers, name="a.jsonl"):
        data = written([row("none", 1), *(row(f"{n}", 1) for n in range(len(answers)))], "d.csv")
        rows = [{"item": f"{n}", "answer": answer} for n, answer in enumerate(answers)]
        [found] = bench("dpg", data, f"a={written(rows, name)}", "--bootstrap", 0)["generators"]
        return found

    return dpg


@pytest.fixture
def oneig(bench, written, tmp_path):
    """The mean of OneIG with an answer to its only question."""

    def oneig(answer):
        (tmp_path / "human.json").write_text(json.dumps({"0": {"question": {"1": "a?"}, "dependency": {}}}))
        data = written([{"category": "Portrait", "id": "0", "prompt_en": "p"}], "d.csv")
        files = data, f"a={written([{'item': 'human/0', 'answer': answer}])}"
        [found] = bench("oneig", *files, "--questions", tmp_path, "--bootstrap", 0)["generators"]
        return found["mean"]["alignment"]

    return oneig


@pytest.fixture
def tiif(written, tmp_path):
    """The files of TIIF-Bench with a question whose answer is no, and of an answer to it."""

    def tiif(answer):
        for name, content in {
            "prompts": {"short_description": "s", "long_description": "l"},
            "eval_prompts": {"type": "style", "yn_question_list": ["a?"], "yn_answer_list": ["no"]},
        }.items():
            (tmp_path / f"testmini_{name}").mkdir(exist_ok=True)
            file = tmp_path / f"testmini_{name}" / f"style_{name}.jsonl"
            file.write_text(json.dumps(content), "utf-8")
        return tmp_path, f"a={written([{'item': 'style/short/0', 'answer': answer}])}"

    return tiif


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_true_and_false_are_answers_to_yes_no_questions(dpg, name):
    """In CSV they are texts, with any capitals."""
    found = dpg([True, True, False, True], name)

    assert (0.75, 4) == (found["mean"]["overall"], found["pictures"])
    assert "answers" not in found["caution"]


def test_truth_values_count_in_each_benchmark_of_yes_no_questions(bench, oneig, tiif):
    """Whatever word a benchmark has for yes, and where no is the right answer."""
    assert (1, 0) == (oneig(True), oneig(False))
    for answer in (True, False):
        [found] = bench("tiif", *tiif(answer), "--bootstrap", 0)["generators"]
        assert {"overall short": float(not answer)} == found["mean"]


@pytest.mark.parametrize("missing", [None, float("nan"), 1, 0, 0.5, "1", "nan"])
def test_null_and_numbers_are_no_answers_and_leave_their_pictures_out(dpg, missing):
    """A caution counts them; they would count as wrong otherwise, though a 1 may mean yes."""
    found = dpg(["yes", missing, "yes"])

    assert (1, 2) == (found["mean"]["overall"], found["pictures"])
    assert "left out without all answers: 1" in found["caution"]


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_answer_to_a_yes_no_question_is_wrong_with_a_caution(dpg, empty):
    """A model that answers nothing has not said yes; where nothing is empty the caution is silent."""
    found = dpg(["yes", empty, "no"])

    assert (pytest.approx(1 / 3), 3) == (found["mean"]["overall"], found["pictures"])
    assert "empty answers, which are wrong: 1" in found["caution"]
    assert "empty" not in dpg(["yes", "no"])["caution"]


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_picture_may_show_no_text_but_null_is_no_text(bench, written, missing):
    """An empty text counts without a caution; a null, as of a reader that failed, leaves its picture out."""
    prompts = [{"prompt_id": n, "category": "s", "prompt": "p", "text": ["nan open"]} for n in range(3)]
    read = ["open nan", "", missing]
    given = [{"item": n, "tile": 1, "answer": text} for n, text in enumerate(read)]
    lines = [{"image": f"{n}_1.png", "ocr_results": text} for n, text in enumerate(read)]
    files = f"a={written(given, 'a.jsonl')}", f"b={written(lines, 'b.jsonl')}"
    found = bench("longtext", written(prompts, "d.jsonl"), *files, "--bootstrap", 0)["generators"]

    assert [(0.5, 2)] * 2 == [(each["mean"]["text"], each["pictures"]) for each in found]
    assert all("left out without all answers: 1" in each["caution"] for each in found)
    assert not any("empty" in each["caution"] for each in found)


def test_null_in_the_authors_answers_of_tiif_is_missing(bench, tiif, tmp_path):
    """Beside a text, which counts as it is written, and a truth value."""
    data, _ = tiif("no")
    folder = tmp_path / "a" / "style" / "short"
    folder.mkdir(parents=True)
    for number, answer in enumerate(["NO", None, False, "1"]):
        content = {"questions": ["a?"], "gt_answers": ["no"], "model_pred": [answer]}
        (folder / f"{number}.json").write_text(json.dumps(content), "utf-8")
    [found] = bench("tiif", data, f"a={tmp_path}/a", "--bootstrap", 0)["generators"]

    assert {"overall short": pytest.approx(2 / 3, abs=1e-4)} == found["mean"]
    assert "left out without all answers: 1" in found["caution"]


def test_items_without_questions_are_refused(refused, tiif, tmp_path):
    """There would be no figure, and no word about it."""
    data, _ = tiif("no")
    folder = tmp_path / "a" / "style" / "short"
    folder.mkdir(parents=True)
    content = {"questions": [], "gt_answers": [], "model_pred": []}
    (folder / "0.json").write_text(json.dumps(content), "utf-8")

    assert "item style/short/0 has no question" in refused("bench", "tiif", data, f"a={tmp_path}/a")


@pytest.mark.parametrize("tiles", [("0", "00"), ("1", "1.0"), ("07", "7.00")])
def test_numbers_of_a_picture_are_one_however_they_are_written(refused, written, tiles):
    """With leading zeros, or as floats of a column with empty cells."""
    data = written([row("none", 1), row("x", 1)], "d.csv")
    rows = [{"item": "x", "tile": tile, "answer": "yes"} for tile in tiles]

    assert "row 2: item x has a second answer to question 1" in refused(
        "bench", "dpg", data, f"a={written(rows, 'a.csv')}"
    )


def test_numbers_of_questions_may_be_floats(bench, written):
    """Of a column with empty cells."""
    data = written([row("none", 1), row("x", 1), row("x", 2)], "d.csv")
    rows = [{"item": "x", "question": f"{n}.0", "answer": answer} for n, answer in ((1, "yes"), (2, "no"))]
    [found] = bench("dpg", data, f"a={written(rows, 'a.csv')}", "--bootstrap", 0)["generators"]

    assert 0.5 == found["mean"]["overall"]


@pytest.mark.parametrize(("answer", "line"), [("", "''"), ("nan", "'nan'"), ("high", "'high'")])
def test_a_clipscore_that_is_no_number_is_refused(refused, tmp_path, written, answer, line):
    """In the table of CVTG-2K, whose other answers are texts."""
    (tmp_path / "CVTG").mkdir()
    content = {"data_list": [{"index": 0, "prompt": "a sign 'GO'"}]}
    (tmp_path / "CVTG" / "2.json").write_text(json.dumps(content), "utf-8")
    given = {"text": "go", "clipscore": answer}
    rows = [{"item": "CVTG/2/0", "question": name, "answer": each} for name, each in given.items()]

    assert f"item CVTG/2/0: its clipscore is {line}, and no number" in refused(
        "bench", "cvtg2k", tmp_path, f"a={written(rows, 'a.csv')}"
    )


def test_misspelt_images_in_the_folders_of_a_generator_are_counted(tmp_path):
    """Where folders have those of several generators and benchmarks, too."""
    files = ("anime/A/000.png", "anime/A/001 (1).png", "anime/A/0O2.png", "anime/B/0O0.png", "text/A/000.png")
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    items = [BenchmarkItem(f"anime/{n}", "p", f"anime/{{generator}}/00{n}") for n in range(3)]
    placed = images_in(tmp_path, items, "A")

    assert (["anime/0"], 2) == ([*placed.of_item], placed.others)


def test_digits_of_other_scripts_are_no_numbers_of_pictures(tmp_path):
    """As in other names they are counted as pictures of no prompt."""
    for name in ("0.png", "\u0661.png", "2_\u0661.png"):
        (tmp_path / name).touch()
    placed = images_in(tmp_path, [BenchmarkItem(f"{n}", "p", f"{n}") for n in range(3)], "a")

    assert (["0"], 2) == ([*placed.of_item], placed.others)
