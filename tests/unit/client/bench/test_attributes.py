"""`scoregate bench compbench`, `tiif` and `unigen`: means by attribute, and names of pictures."""

import json
import sys
from random import Random
from statistics import fmean
from types import SimpleNamespace

import pytest

from scoregate.bench.answers import BenchmarkItem, images_in
from scoregate.cli.main import main

CATEGORIES = ("color", "shape", "texture")


@pytest.fixture
def compbench(tmp_path, written):
    """A folder of two prompts in each category, phrases of each, and probabilities for three pictures."""
    random, phrases, answers = Random(4), [], []
    for name in CATEGORIES:
        (tmp_path / f"{name}_val.txt").write_text(f"a {name} cup\na {name} bench\n", "utf-8")
        for number in range(2):
            count = random.randint(1, 10)
            own = [f"a {name} thing {place}" for place in range(count)] + ["the left"]
            phrases += [{"item": f"{name}/{number}", "phrase": each} for each in ("top", *own)]
            answers += [
                {
                    "item": f"{name}/{number}",
                    "tile": t,
                    "question": f"{each}?",
                    "answer": 0.7 + random.random() / 4,
                }
                for t in range(3)
                for each in own[:-1][:8]
            ]
    return (
        str(tmp_path),
        f"a={written(answers, 'answers.csv')}",
        "--phrases",
        written(phrases, "p.csv"),
    ), answers


@pytest.mark.parametrize(("given", "digits"), [([], 4), (["--exact"], 7)])
def test_a_picture_has_the_product_over_its_phrases_rounded(bench, compbench, given, digits):
    """Of the first eight that name a thing, rounded likewise; the mean of a category is over pictures."""
    arguments, answers = compbench
    products = {}
    for each in answers:
        key = each["item"], each["tile"]
        products[key] = products.get(key, 1) * round(each["answer"], digits)
    of_category = {}
    for (item, _), product in products.items():
        of_category.setdefault(item.partition("/")[0], []).append(round(product, digits))
    [row] = bench("compbench", *arguments, *given, "--bootstrap", 0)["generators"]

    assert {name: fmean(each) for name, each in of_category.items()} == pytest.approx(row["mean"], abs=1e-6)
    assert "3 of 10 pictures of a prompt" in row["caution"]


def test_phrases_of_another_prompt_are_refused(refused, compbench, written):
    """With the file and the item."""
    arguments, _ = compbench
    phrases = written([{"item": "color/2", "phrase": "a cup"}], "other.csv")

    assert "other.csv: the benchmark has no item color/2" in refused(
        "bench", "compbench", *arguments[:3], phrases
    )


@pytest.fixture
def cup(tmp_path, written):
    """A folder of one prompt, and the answer about one of its phrases."""
    (tmp_path / "color_val.txt").write_text("the left of a cup\n", "utf-8")
    return tmp_path, f"a={written([{'item': 'color/0', 'question': 'a cup?', 'answer': 0.5}], 'a.csv')}"


def test_phrases_are_those_of_spacy_where_no_file_has_them(bench, cup, monkeypatch):
    """Its noun chunks of each prompt by the authors' model, without those that name no thing."""
    document = SimpleNamespace(noun_chunks=[SimpleNamespace(text=text) for text in ("the left", "a cup")])
    parsed, loaded = [], []
    parser = SimpleNamespace(pipe=lambda texts: [parsed.append(text) or document for text in texts])
    fake = SimpleNamespace(load=lambda name: loaded.append(name) or parser)
    monkeypatch.setitem(sys.modules, "spacy", fake)
    [row] = bench("compbench", *cup, "--bootstrap", 0)["generators"]

    assert ({"color": 0.5}, ["en_core_web_sm"]) == (row["mean"], loaded)
    assert ["the left of a cup"] == parsed


def absent(name):
    raise OSError(f"[E050] Can't find model {name!r}.")


@pytest.mark.parametrize("spacy", [None, SimpleNamespace(load=absent)], ids=["package", "model"])
def test_without_spacy_the_phrases_are_to_be_given(refused, cup, monkeypatch, capsys, spacy):
    """The line names the option and the installation; the prompts are printed without phrases."""
    monkeypatch.setitem(sys.modules, "spacy", spacy)
    line = refused("bench", "compbench", *cup)

    assert "name the phrases by --phrases FILE, or install spaCy: pip install spacy" in line
    assert "python -m spacy download en_core_web_sm" in line
    assert 0 == main(["bench", "compbench", str(cup[0]), "--prompts"])
    assert "the left of a cup" == json.loads(capsys.readouterr().out)["prompt"]


def test_pictures_of_compbench_are_numbered_on_from_prompt_to_prompt(tmp_path, capsys):
    """With six digits and the whole prompt, as by the authors; a full stop alone tells two prompts apart."""
    (tmp_path / "shape_val.txt").write_text("a round bagel\na round bagel.\n", "utf-8")
    assert 0 == main(["bench", "compbench", str(tmp_path), "--prompts"])
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    for name in (*first["files"], *second["files"]):
        path = tmp_path / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    items = [
        BenchmarkItem(line["id"], line["prompt"], f"shape/samples/{line['prompt']}")
        for line in (first, second)
    ]
    placed = images_in(tmp_path / "out", items, "a")

    assert "shape/samples/a round bagel_000009.png" == first["files"][-1]
    assert "shape/samples/a round bagel._000010.png" == second["files"][0]
    assert [10, 10, 0] == [*map(len, placed.of_item.values()), placed.others]
    assert "a round bagel._000010.png" == placed.of_item["shape/1"][0].name


ATTRIBUTES = ("shape+color", "color+texture", "action+2d", "numeracy", "text", "numeracy+color", "real_world")
NINE = {  # the groups of the attributes above
    "Basic Attribute": ("shape+color", "color+texture"),
    "Basic Relation": ("action+2d",),
    "Basic Reasoning": ("numeracy",),
    "Advanced Attribute+Reasoning": ("numeracy+color",),
    "Advanced Text": ("text",),
    "Real World": ("real_world",),
}


@pytest.fixture
def tiif(tmp_path):
    """The authors' folders of prompts and questions, and of a generator's answers; with these."""
    random, right = Random(5), {}
    for name in ("testmini_prompts", "testmini_eval_prompts", "a"):
        (tmp_path / name).mkdir()
    for attribute in ATTRIBUTES:
        prompts, questions = [], []
        for number in range(3):
            prompts.append({"type": attribute, "short_description": "s", "long_description": "l"})
            wanted = [random.choice(("yes", "No")) for _ in range(random.randint(1, 4))]
            texts = [f"Is {place} there?" for place in range(len(wanted))]
            questions.append({"type": attribute, "yn_question_list": texts, "yn_answer_list": wanted})
            for length in ("short", "long"):
                given = [random.choice(("yes", "no")) for _ in wanted]
                folder = tmp_path / "a" / attribute / length
                folder.mkdir(parents=True, exist_ok=True)
                content = {"questions": texts, "gt_answers": wanted, "model_pred": given}
                (folder / f"{number}.json").write_text(json.dumps(content), "utf-8")
                same = [a == b.lower() for a, b in zip(given, wanted, strict=True)]
                right.setdefault((attribute, length), []).extend(same)
        for name, rows in (("prompts", prompts), ("eval_prompts", questions)):
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (tmp_path / f"testmini_{name}" / f"{attribute}_{name}.jsonl").write_text(lines, "utf-8")
    return (str(tmp_path), f"a={tmp_path / 'a'}"), right


@pytest.mark.parametrize(("given", "digits"), [([], 4), (["--exact"], 17)])
def test_groups_are_means_over_attributes_and_the_whole_over_groups(bench, tiif, given, digits):
    """Of short and of long prompts; shares are rounded before, and the expected answer may be no."""
    arguments, right = tiif
    found = bench("tiif", *arguments, *given, "--bootstrap", 5)
    shares = {key: fmean(each) for key, each in right.items()}
    tables = {t: {row["figure"]: row["mean"]["a"] for row in found[t]} for t in ("attributes", "groups")}

    assert {" ".join(key): share for key, share in shares.items()} == pytest.approx(tables["attributes"])
    shares = {key: round(share, digits) for key, share in shares.items()}
    for length in ("short", "long"):
        nine = {name: fmean(shares[each, length] for each in of) for name, of in NINE.items()}
        of_length = {
            name.removesuffix(f" {length}"): value
            for name, value in tables["groups"].items()
            if name.endswith(length)
        }
        basic = [shares[each, length] for name, of in NINE.items() if name.startswith("Basic") for each in of]
        assert fmean(basic) == pytest.approx(of_length.pop("Basic"), abs=1e-9)
        assert (shares["text", length] + shares["numeracy+color", length]) / 2 == of_length.pop("Advanced")
        assert nine == pytest.approx(of_length, abs=1e-9)
        overall = found["generators"][0]["mean"][f"overall {length}"]
        assert fmean(nine.values()) == pytest.approx(overall, abs=1e-9)


def test_the_authors_answers_have_questions_of_their_own(bench, tiif, tmp_path):
    """Released ones are partly of older data: they count as they are, with a caution."""
    arguments, right = tiif
    content = {"questions": ["Is it so?"], "gt_answers": ["yes"], "model_pred": ["yes"]}
    for number in (2, 3):
        (tmp_path / "a" / "text" / "short" / f"{number}.json").write_text(json.dumps(content), "utf-8")
    found = bench("tiif", *arguments, "--bootstrap", 0)
    [share] = [row["mean"]["a"] for row in found["attributes"] if row["figure"] == "text short"]
    last = json.loads(
        (tmp_path / "testmini_eval_prompts" / "text_eval_prompts.jsonl").read_text().splitlines()[2]
    )
    kept = right["text", "short"][: -len(last["yn_answer_list"])]

    assert (sum(kept) + 2) / (len(kept) + 2) == pytest.approx(share)
    assert "with other questions than those of DATA: 2" in found["generators"][0]["caution"]


def test_a_file_of_answers_in_another_form_is_refused(refused, tiif, tmp_path):
    """With its name."""
    arguments, _ = tiif
    content = {"questions": ["Is it so?"], "gt_answers": ["yes"], "model_pred": []}
    (tmp_path / "a" / "text" / "short" / "1.json").write_text(json.dumps(content), "utf-8")

    assert "1.json: not of the form of TIIF-Bench" in refused("bench", "tiif", *arguments)


def test_answers_in_a_table_are_about_the_questions_of_the_data(bench, tiif, tmp_path, written):
    """Apart from case; short prompts alone have no figure of long ones."""
    arguments, _ = tiif
    file = tmp_path / "testmini_eval_prompts" / "text_eval_prompts.jsonl"
    questions = json.loads(file.read_text("utf-8").splitlines()[0])
    rows = [
        {"item": "text/short/0", "question": id, "answer": answer.upper()}
        for id, answer in enumerate(questions["yn_answer_list"], 1)
    ]
    [row] = bench("tiif", arguments[0], f"b={written(rows, 'b.csv')}")["generators"]

    assert {"overall short": 1} == row["mean"]


POINTS = ("Style", "Action - Hand (Character/Anthropomorphic)", "Action - State", "Attribute - Color")


@pytest.mark.parametrize(
    ("column", "keys"),
    [
        ("en", ("Testpoints", "Testpoint Description")),
        ("zh", ("考点", "考点对应描述")),
    ],
)
def test_test_points_are_counted_over_pictures_by_dimension(bench, written, column, keys):
    """A grade of 1 is right; a picture without grades is left out alone, as in the released script."""
    random, rows, results = Random(6), [], []
    for index in range(6):
        points = random.sample(POINTS, 3)
        cell = json.dumps(dict(zip(keys, (points, ["what"] * 3), strict=True)))
        rows.append({"index": index, f"prompt_{column}": f"p {index}", f"sub_dims_{column}": cell})
        for picture in range(4):
            content = {"testpoint": points, "score": [random.choice((0, 1)) for _ in points]}
            text = "" if (index, picture) == (5, 3) else str(content)
            results.append(
                {
                    "index": index,
                    "testpoint": str(points),
                    "img_path": f"o/{index}_{picture}.png",
                    "result_json": text,
                }
            )
    found = bench("unigen", written(rows, "d.csv"), f"a={written(results, 'r.csv')}", "--bootstrap", 0)
    right = {}
    for each in results:
        if each["result_json"]:
            content = eval(each["result_json"])
            for point, score in zip(content["testpoint"], content["score"], strict=True):
                for name in {point, point.split("-")[0].strip()}:
                    right.setdefault(name, []).append(score)
    mean = found["generators"][0]["mean"] | {row["figure"]: row["mean"]["a"] for row in found["points"]}

    assert {name: fmean(each) for name, each in right.items()} == pytest.approx(mean, abs=1e-6)
    [row] = found["generators"]
    assert 23 == row["pictures"]
    assert "pictures left out without all answers: 1; 3 to 4 of 4 pictures" in row["caution"]


@pytest.mark.parametrize("missing", ["null", "NaN", "", "None", '{"score": null}'])
def test_a_picture_whose_judge_failed_is_left_out(bench, written, missing):
    """The authors' script writes null for it, and JSON for the others."""
    sub_dims = json.dumps({"Testpoints": ["Style"], "Testpoint Description": ["a"]})
    data = written([{"index": 0, "prompt_en": "p", "sub_dims_en": sub_dims}], "d.csv")
    grades = json.dumps({"analysis": ["it's true", None, True], "score": [1]}, indent=4)
    rows = [
        {"index": 0, "img_path": f"o/0_{n}.png", "result_json": cell}
        for n, cell in enumerate([grades, missing, "{'score': [0]}"])
    ]
    [found] = bench("unigen", data, f"a={written(rows, 'r.csv')}", "--bootstrap", 0)["generators"]

    assert ({"Style": 0.5}, 2) == (found["mean"], found["pictures"])
    assert "pictures left out without all answers: 1" in found["caution"]


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("{'score': [1]}", "not a grade for each test point of item 0, Style, Text"),
        ("{'score': 1}", "not a grade for each test point"),
        ("__import__('os')", "result_json or testpoint cannot be read"),
    ],
)
def test_grades_that_do_not_fit_are_refused(refused, written, cell, line):
    """With the row; text that is code is not run."""
    sub_dims = json.dumps({"Testpoints": ["Style", "Text"], "Testpoint Description": ["a", "b"]})
    data = written([{"index": 0, "prompt_en": "p", "sub_dims_en": sub_dims}], "d.csv")
    results = written([{"index": 0, "img_path": "0_0.png", "result_json": cell}], "r.csv")

    assert f"row 1: {line}" in refused("bench", "unigen", data, f"a={results}")


def test_grades_of_other_test_points_are_refused(refused, written):
    """As of another file of prompts; a cell of the data that is no JSON is refused with its row."""
    sub_dims = json.dumps({"Testpoints": ["Style"], "Testpoint Description": ["a"]})
    rows = [{"index": 0, "prompt_en": "p", "sub_dims_en": sub_dims}]
    results = [{"index": 0, "img_path": "0_0.png", "testpoint": "['Text']", "result_json": "{'score': [1]}"}]
    file, broken = written(rows, "d.csv"), written([rows[0] | {"sub_dims_en": "{"}], "b.csv")
    answers = f"a={written(results, 'r.csv')}"

    assert "not a grade for each test point of item 0, Style" in refused("bench", "unigen", file, answers)
    assert "b.csv, row 1, column sub_dims_en: no lists" in refused("bench", "unigen", broken, answers)


def test_a_row_that_cannot_be_read_is_left_out_where_it_is_wanted(bench, written):
    """The caution has the number of prompts."""
    sub_dims = json.dumps({"Testpoints": ["Style"], "Testpoint Description": ["a"]})
    rows = [{"index": number, "prompt_en": "p", "sub_dims_en": sub_dims} for number in range(2)]
    file = written([rows[0], rows[1] | {"sub_dims_en": sub_dims[:-1]}], "d.csv")
    answers = written([{"item": 0, "tile": 0, "answer": 1}], "a.csv")
    found = bench("unigen", file, f"a={answers}", "--skip-broken", "--bootstrap", 0)

    assert 1 == found["prompts"]
    assert "1 of 600 prompts" in found["generators"][0]["caution"]
