"""`scoregate bench` from pictures to a table, with models in this process."""

import io
import json
from math import prod

import PIL.Image
import pytest

from scoregate.cli.results import lines_of
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


@pytest.fixture
def gedit(tmp_path):
    """One edit of GEdit, and a folder with its picture before and after."""
    row = {"task_type": "t", "key": "k", "instruction": "make it red", "instruction_language": "en"}
    jsonl(tmp_path / "data.jsonl", row)
    folder = tmp_path / "out" / "fullset" / "t" / "en"
    folder.mkdir(parents=True)
    for name, colour in (("k", "red"), ("k_SRCIMG", "white")):
        (folder / f"{name}.png").write_bytes(png(colour))
    return folder


def test_an_edit_is_graded_with_the_picture_before_it(run, gedit, tmp_path):
    """By the rubric, whose outputs give the figures; the picture before the edit is none of the generator."""
    [row] = table(run, "gedit", "data.jsonl", "a=out")[0]["generators"]
    [line] = lines_of(tmp_path / "out" / "gedit-a.jsonl")
    grades = {name: each["value"] for name, each in line["details"]["judge"]["outputs"].items()}

    assert min(grades["success"], grades["restraint"]) == row["mean"]["G_SC"]
    assert min(grades["nature"], grades["clean"]) == row["mean"]["G_PQ"]
    assert line["scores"]["judge"] == pytest.approx(row["mean"]["G_O"])
    assert "the questions' words are those of the rubric gedit" in row["caution"]
    assert "pictures of no prompt" not in row["caution"]


def test_pictures_before_edits_may_be_in_a_folder_of_their_own(run, gedit, tmp_path):
    """For several generators; without one an edit is not graded."""
    (tmp_path / "before" / "fullset" / "t" / "en").mkdir(parents=True)
    (gedit / "k_SRCIMG.png").rename(tmp_path / "before" / "fullset" / "t" / "en" / "k_SRCIMG.png")
    done = run("bench", "gedit", "data.jsonl", "a=out")
    [row] = table(run, "gedit", "data.jsonl", "a=out", "--sources", "before")[0]["generators"]

    assert (2, True) == (done.returncode, "column source: " in done.stderr)
    assert 1 == row["pictures"]


def test_a_rubric_on_another_scale_is_refused(run, gedit, tmp_path, monkeypatch):
    """Its outputs have the names of the benchmark's, and grades outside of its range."""
    (tmp_path / "rubrics").mkdir()
    outputs = "".join(
        f"[calls.outputs.{name}]\nrange = [60, 90]\n" for name in ("success", "restraint", "nature", "clean")
    )
    text = f"score = 'success'\n[[calls]]\ninstructions = 'x'\nimages = ['source', 'candidate']\n{outputs}"
    (tmp_path / "rubrics" / "mine.toml").write_text(text, "utf-8")
    monkeypatch.setenv("SCOREGATE_JUDGE__RUBRICS", json.dumps([str(tmp_path / "rubrics")]))
    done = run("bench", "gedit", "data.jsonl", "a=out", "--rubric", "mine")

    assert (2, True) == (done.returncode, "item t/en/k, rubric mine: " in done.stderr)
    assert "is not from 0 to 10" in done.stderr


def test_an_edit_is_graded_by_the_points_of_its_type(run, tmp_path):
    """They are texts of the item; `{type}` in the name of a rubric stands for the type."""
    edit = {"id": "x/1.png", "prompt": "as a comic", "edit_type": "style"}
    jsonl(tmp_path / "data.json", {"9": edit})
    for name in ("before/x/1", "out/9"):
        (tmp_path / f"{name}.png").parent.mkdir(parents=True)
        (tmp_path / f"{name}.png").write_bytes(png())
    given = ("imgedit", "data.json", "a=out", "--sources", "before")
    [row] = table(run, *given)[0]["generators"]
    [line] = lines_of(tmp_path / "out" / "imgedit-a.jsonl")
    done = run("bench", *given, "--rubric", "mine_{type}", "--out", "other")
    [other] = lines_of(tmp_path / "other" / "imgedit-a.jsonl")

    assert row["mean"]["overall"] == round(line["scores"]["judge"], 2)
    assert (
        "compliance: the whole picture has the wanted style."
        in line["details"]["judge"]["calls"][0]["question"]
    )
    assert (2, "mine_style") == (done.returncode, other["own_options"]["judge"]["rubric"])


@pytest.mark.parametrize("name", ["wise", "wise_verified"])
def test_a_picture_is_graded_by_what_its_prompt_stands_for(run, tmp_path, name):
    """The explanation of the data is a text of the item; the figure is the rubric's formula."""
    prompt = {"prompt_id": 7, "Prompt": "the feast", "Explanation": "eggs", "Category": "time"}
    jsonl(tmp_path / "data.json", [prompt])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "7.png").write_bytes(png())
    [row] = table(run, name, "data.json", "a=out")[0]["generators"]
    [line] = lines_of(tmp_path / "out" / f"{name}-a.jsonl")

    assert line["scores"]["judge"] == pytest.approx(row["mean"]["time"])
    assert 'What it stands for: "eggs"' in line["details"]["judge"]["calls"][0]["question"]


@pytest.mark.parametrize(
    ("category", "given", "rubric", "said"),
    [
        ("color_change", "1.png", "kris_edit", "Picture 1 was edited into picture 2"),
        ("physics", "1.png", "kris_knowledge", 'know for it: "it falls"'),
        ("viewpoint_change", "1.png", "kris_view", "Picture 2 shows the right result"),
        ("temporal_prediction", ["1.png", "2.png"], "kris_series", "Pictures 1 to 2 are given"),
    ],
)
def test_edits_are_graded_with_the_pictures_of_their_category(run, tmp_path, category, given, rubric, said):
    """The picture before, the right result, or a series; the figure is the mean of the grades' points."""
    edit = {"ori_img": given, "gt_img": "gt.png", "ins_en": "next", "explain_en": "it falls"}
    jsonl(tmp_path / "data" / category / "annotation.json", {"7": edit})
    (tmp_path / "out" / category).mkdir(parents=True)
    for name in (f"out/{category}/7", *(f"data/{category}/{each}" for each in ("1", "2", "gt"))):
        (tmp_path / f"{name}.png").write_bytes(png())
    [row] = table(run, "kris", "data", "a=out")[0]["generators"]
    [line] = lines_of(tmp_path / "out" / "kris-a.jsonl")

    assert rubric == line["details"]["judge"]["rubric"]
    assert (line["scores"]["judge"] - 1) * 25 == pytest.approx(row["mean"]["overall"])
    assert said in line["details"]["judge"]["calls"][0]["question"]
