"""`scoregate bench` from pictures to a table, with models in this process."""

import io
import json
from math import prod

import PIL.Image
import pytest

from scoregate.runs.results import lines_of
from tests.support.pictures import png, saved
from tests.unit.client.cli.conftest import run

__all__ = ["run"]

MODELS = "".join(f'[models.{name}]\nfamily = "fake"\n' for name in ("vqa", "clip", "ocr", "questions"))


@pytest.fixture(autouse=True)
def profile(tmp_path, monkeypatch):
    """A profile of fake models, named by the environment, and a store of question sets."""
    (tmp_path / "fake.toml").write_text(MODELS, "utf-8")
    monkeypatch.setenv("SCOREGATE_LOCAL", str(tmp_path / "fake.toml"))
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path}/questions.sqlite3")


def table(run, *arguments):
    """The tables, and what the command says on stderr."""
    done = run("bench", *map(str, arguments), "--json", "--bootstrap", "0")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def sheet(*colours):
    """A sheet of 2 x 2 plain tiles."""
    image = PIL.Image.new("RGB", (32, 32))
    for number, colour in enumerate(colours):
        tile = PIL.Image.open(io.BytesIO(png(colour)))
        image.paste(tile, (number % 2 * 16, number // 2 * 16))
    return saved(image, "PNG")


@pytest.fixture
def dpg(tmp_path):
    """One item of two questions, and a folder with its sheet of 32 x 32 pixels."""
    rows = [f"x,a cup,,{id},{id - 1},entity - whole (cup),Is there cup {id}?" for id in (1, 2)]
    head = "item_id,text,keywords,proposition_id,dependency,tuple,question_natural_language"
    (tmp_path / "dpg.csv").write_text("\n".join([head, *rows]), "utf-8")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x.png").write_bytes(sheet("red", "lime", "blue", "red"))
    return ("dpg", "dpg.csv", "a=out", "--first-row")


def test_sheets_of_dpg_are_scored_tile_by_tile(run, dpg, tmp_path):
    """Each tile has the score of the same picture alone; a second run scores nothing."""
    content, said = table(run, *dpg)
    lines = list(lines_of(tmp_path / "out" / "dpg-a.jsonl"))
    again, _ = table(run, "dpg", "dpg.csv", "b=out/dpg-a.jsonl", "--first-row")

    assert [f"x.png#{number}" for number in range(4)] == [line["image"] for line in lines]
    assert lines[0]["scores"] == lines[3]["scores"]
    yes = [[each["answer"] == "yes" for each in line["details"]["dsg"]["questions"]] for line in lines]
    counted = [first * (1 + second) / 2 for first, second in yes]
    assert sum(counted) / 4 == pytest.approx(content["generators"][0]["mean"]["overall"])
    assert content["generators"][0]["mean"] == again["generators"][0]["mean"]
    [row] = content["generators"]
    assert f"answered by {row['models']}, in the paper by mPLUG-large" in row["caution"]
    assert [row["models"]] == [lines[0]["models"]["vqa"]]
    assert lines[0]["models"].keys() == {"vqa", "questions"}
    assert "4 were requested" in said
    assert "0 were requested" in table(run, *dpg)[1]


def test_tiles_are_cut_by_the_resolution(run, dpg, tmp_path):
    """From the top left; a sheet that is smaller has no answers, and then there is no table."""
    table(run, *dpg, "--resolution", 8)
    hashes = {line["sha256"] for line in lines_of(tmp_path / "out" / "dpg-a.jsonl")}
    done = run("bench", *dpg, "--resolution", "17", "--out", "other")

    assert 1 == len(hashes)
    assert (2, True) == (done.returncode, "no prompt has pictures with all answers" in done.stderr)
    assert "a sheet of 32 x 32 pixels has no tile 1" in done.stderr


def jsonl(path, *rows):
    """A file of JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def details(file, metric):
    """The details of a metric in each line of results."""
    return [line["details"][metric] for line in lines_of(file)]


def test_questions_of_geneval2_have_their_probabilities(run, tmp_path):
    """One that is there twice has one answer; the words are the paper's, so there is no caution of these."""
    questions = [["How many?", "two"], ["Is it red?", "Yes"], ["Is it red?", "Yes"]]
    row = {
        "prompt": "two",
        "atom_count": 3,
        "vqa_list": questions,
        "skills": ["count", "attribute", "object"],
    }
    jsonl(tmp_path / "data.jsonl", row)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "0.png").write_bytes(png())
    [row] = table(run, "geneval2", "data.jsonl", "a=out")[0]["generators"]
    [found] = details(tmp_path / "out" / "geneval2-a.jsonl", "soft_tifa")
    of_text = {each["text"]: each["score"] for each in found["questions"]}

    assert {"count": of_text["How many?"], "attribute": of_text["Is it red?"]} == {
        name: row["mean"][name] for name in ("count", "attribute")
    }
    assert row["mean"]["object"] == row["mean"]["attribute"]
    assert "words" not in row["caution"]


def test_pictures_are_also_given_as_paths_by_prompt(run, tmp_path):
    """As the authors of GenEval 2 do; a prompt of no item is a caution, and a file without any is refused."""
    rows = (
        {"prompt": f"p {n}", "atom_count": 3, "vqa_list": [["So?", "Yes"]], "skills": ["x"]} for n in range(2)
    )
    jsonl(tmp_path / "data.jsonl", *rows)
    jsonl(tmp_path / "out" / "paths.json", {"p 1": "so.png", "another": "no.png"})
    jsonl(tmp_path / "none.json", {"another": "no.png"})
    (tmp_path / "out" / "so.png").write_bytes(png())
    [row] = table(run, "geneval2", "data.jsonl", "a=out/paths.json")[0]["generators"]
    [line] = lines_of(tmp_path / "out" / "geneval2-a.jsonl")

    assert ("so.png", "p 1", 1) == (line["image"], line["prompt"], row["pictures"])
    assert "pictures of no prompt: 1" in row["caution"]
    assert "no prompt is one of the benchmark" in run("bench", "geneval2", "data.jsonl", "a=none.json").stderr


@pytest.fixture
def oneig(tmp_path):
    """One prompt of OneIG, and a folder with its sheet, whose last tile is black."""
    (tmp_path / "data.csv").write_text("category,id,prompt_en\nPortrait,000,a person\n", "utf-8")
    entry = {"question": {"1": "Is it so?", "2": "Is it red?"}, "dependency": {"1": [0], "2": [1]}}
    jsonl(tmp_path / "Q_D" / "human.json", {"000": entry})
    (tmp_path / "out" / "human" / "a").mkdir(parents=True)
    (tmp_path / "out" / "human" / "a" / "000.webp").write_bytes(sheet("red", "lime", "blue", "black"))
    return ("oneig", "data.csv", "a=out", "--questions", "Q_D")


@pytest.mark.parametrize(("given", "pictures"), [([], 3), (["--keep-black"], 4)])
def test_a_black_tile_of_oneig_is_no_picture(run, oneig, given, pictures):
    """Of a folder with the generator's name within it; skipped tiles are a caution."""
    [row] = table(run, *oneig, *given)[0]["generators"]

    assert (pictures, not given) == (row["pictures"], "black tiles skipped: 1" in row["caution"])


def test_the_words_of_questions_are_a_caution_until_they_are_given(run, oneig):
    """By an option of the metric; then the caution has them."""
    words = ("--option", "dsg.question={} Really?")
    given = ([], [*words, "--out", "other"])
    said = [table(run, *oneig, *more)[0]["generators"][0]["caution"] for more in given]

    assert ["the questions' words are those of dsg" in each for each in said] == [True, False]
    assert "questions as '{} Really?'" in said[1]
    assert "was scored with the options {}" in run("bench", *oneig, *words).stderr


def test_pictures_that_are_none_of_the_benchmark_are_refused(run, oneig, tmp_path):
    """Before anything is scored."""
    (tmp_path / "out" / "human" / "a" / "000.webp").unlink()
    (tmp_path / "out" / "other.png").write_bytes(png())
    done = run("bench", *oneig)

    assert (2, True) == (
        done.returncode,
        "no picture has the name of an item, such as human/a" in done.stderr,
    )


def test_two_files_of_one_picture_are_refused(run, oneig, tmp_path):
    """With both names."""
    (tmp_path / "out" / "human" / "a" / "000.png").write_bytes(png())
    done = run("bench", *oneig)

    assert (2, True) == (done.returncode, "are the same picture of item human/000" in done.stderr)


def test_results_without_the_details_of_the_metric_are_refused(run, oneig, tmp_path):
    """Such as those of `scoregate batch` with another metric."""
    table(run, *oneig)
    file = tmp_path / "out" / "oneig-a.jsonl"
    [first, *_] = lines_of(file)
    jsonl(tmp_path / "b.jsonl", {name: value for name, value in first.items() if name != "details"})
    done = run("bench", "oneig", "data.csv", "b=b.jsonl", "--questions", "Q_D")
    jsonl(tmp_path / "c.jsonl", first | {"columns": {"item": "human/000"}})
    other = run("bench", "oneig", "data.csv", "c=c.jsonl", "--questions", "Q_D")

    assert (2, True) == (done.returncode, "no details of dsg about item human/000" in done.stderr)
    assert (2, True) == (other.returncode, "or no column tile" in other.stderr)


def test_texts_are_read_by_the_ocr_of_the_service(run, tmp_path):
    """Several pictures of a prompt, of which one is of no prompt and one is broken."""
    jsonl(tmp_path / "data.jsonl", *({"prompt_id": n, "prompt": "a", "text": ["b c"]} for n in range(2)))
    (tmp_path / "out").mkdir()
    for name in ("0000_1", "0_2", "0001", "other"):
        (tmp_path / "out" / f"{name}.png").write_bytes(png() if name != "0001" else png()[:40])
    done = run("bench", "longtext", "data.jsonl", "a=out", "--json", "--bootstrap", "0")
    [row] = json.loads(done.stdout)["generators"]

    assert (2, 0) == (row["pictures"], done.returncode)
    for part in (
        "1 of 160 prompts",
        "left out without all answers: 1",
        "2 of 4 pictures",
        "pictures of no prompt: 1",
    ):
        assert part in row["caution"]


def test_cvtg_has_both_of_its_metrics(run, tmp_path):
    """Words by the OCR, and CLIPScore on its own scale."""
    rows = {"data_list": [{"index": 4, "prompt": "a sign 'tea'"}]}
    jsonl(tmp_path / "CVTG-2K" / "CVTG-style" / "3.json", rows)
    (tmp_path / "out" / "CVTG-Style" / "3").mkdir(parents=True)
    (tmp_path / "out" / "CVTG-Style" / "3" / "4.png").write_bytes(png())
    [row] = table(run, "cvtg2k", "CVTG-2K", "a=out")[0]["generators"]
    [line] = lines_of(tmp_path / "out" / "cvtg2k-a.jsonl")

    assert line["scores"]["clipscore"] == row["mean"]["CLIPScore"]
    assert {"scale": "hessel", "prefix": "A photo depicts"} == line["own_options"]["clipscore"]


def test_an_expected_no_is_right_for_tiif(run, tmp_path):
    """Both questions are yes-no questions of the metric, whatever is expected."""
    for name, row in (
        ("prompts", {"type": "text", "short_description": "a", "long_description": "b"}),
        (
            "eval_prompts",
            {"yn_question_list": ["So?", "Not so?"], "yn_answer_list": ["yes", "No"], "type": "text"},
        ),
    ):
        jsonl(tmp_path / f"testmini_{name}" / f"text_{name}.jsonl", row)
    (tmp_path / "out" / "text" / "a" / "short_description").mkdir(parents=True)
    (tmp_path / "out" / "text" / "a" / "short_description" / "0.png").write_bytes(png())
    [row] = table(run, "tiif", ".", "a=out")[0]["generators"]
    [found] = details(tmp_path / "out" / "tiif-a.jsonl", "dsg")
    said = [each["answer"] for each in found["questions"]]

    assert ((said[0] == "yes") + (said[1] == "no")) / 2 == row["mean"]["overall short"]


def test_phrases_of_compbench_are_questions_by_themselves(run, tmp_path):
    """A picture has the product of P(yes) among yes and no; other words are a caution."""
    prompt, phrases = "a red cup and a blue bench.", ("a red cup", "a blue bench")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "color_val.txt").write_text(prompt, "utf-8")
    jsonl(tmp_path / "phrases.jsonl", *({"item": "color/0", "phrase": each} for each in phrases))
    folder = tmp_path / "out" / "color" / "samples"
    folder.mkdir(parents=True)
    for number, colour in enumerate(("red", "blue")):
        (folder / f"{prompt}_{number:06}.png").write_bytes(png(colour))
    given = ("compbench", "data", "a=out", "--phrases", "phrases.jsonl")
    [row] = table(run, *given)[0]["generators"]
    lines = list(lines_of(tmp_path / "out" / "compbench-a.jsonl"))
    [worded] = table(run, *given, "--out", "other", "--option", "dsg.question={} Yes or no?")[0]["generators"]
    [other, _] = lines_of(tmp_path / "other" / "compbench-a.jsonl")

    asked = [line["details"]["dsg"]["questions"] for line in lines]
    products = [prod(round(each["probability"], 4) for each in questions) for questions in asked]
    assert [[f"{each}?" for each in phrases]] * 2 == [[each["text"] for each in of] for of in asked]
    assert sum(round(each, 4) for each in products) / 2 == pytest.approx(row["mean"]["color"], abs=1e-6)
    assert "{}" == lines[0]["own_options"]["dsg"]["question"]
    assert "question" not in other["own_options"]["dsg"]
    assert f"answered by {row['models']}, in the paper by BLIP-VQA" in row["caution"]
    assert "question" not in row["caution"]
    assert "questions as '{} Yes or no?'" in worded["caution"]
    assert row["mean"] != worded["mean"]


def test_test_points_of_unigen_are_questions_with_the_prompt(run, tmp_path):
    """One text may belong to two points; the user's own words stand in place of ours."""
    sub_dims = {"Testpoints": ["Style", "World Knowledge"], "Testpoint Description": ["ukiyo-e"] * 2}
    row = {"index": 7, "prompt_en": "a fox in ukiyo-e", "sub_dims_en": json.dumps(sub_dims)}
    jsonl(tmp_path / "data.jsonl", row)
    (tmp_path / "out").mkdir()
    for number in range(2):
        (tmp_path / "out" / f"7_{number}.png").write_bytes(png(("red", "lime")[number]))
    content, _ = table(run, "unigen", "data.jsonl", "a=out")
    lines = list(lines_of(tmp_path / "out" / "unigen-a.jsonl"))
    words = ("--out", "other", "--option", "dsg.question={} Really?")
    [worded] = table(run, "unigen", "data.jsonl", "a=out", *words)[0]["generators"]
    again, _ = table(run, "unigen", "data.jsonl", "b=out/unigen-a.jsonl")

    asked = [line["details"]["dsg"]["questions"] for line in lines]
    yes = [[each["answer"] == "yes" for each in questions] for questions in asked]
    assert [['Style, "ukiyo-e"', 'World Knowledge, "ukiyo-e"']] * 2 == [
        [each["text"] for each in questions] for questions in asked
    ]
    assert 'from the prompt "a fox in ukiyo-e". Is it' in lines[0]["own_options"]["dsg"]["question"]
    [row] = content["generators"]
    assert {"Style": sum(a for a, _ in yes) / 2, "World Knowledge": sum(b for _, b in yes) / 2} == row["mean"]
    assert row["mean"] == again["generators"][0]["mean"]
    assert f"answered by {row['models']}, in the paper by Gemini 2.5 Pro" in row["caution"]
    assert "2 of 4 pictures of a prompt" in row["caution"]
    assert "questions as '{} Really?'" in worded["caution"]
