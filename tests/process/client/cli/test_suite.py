"""`scoregate bench run` with the demo models: pictures of the prompts win in every benchmark."""

import csv
import io
import json
import re

import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont
import pytest

from demo.samples import FOLDER
from tests.app.client.test_suite import content_of, put, suite_file
from tests.support.pictures import saved

PROMPT, QUESTIONS = "a green circle and a red square", ["Is there a green circle?", "Is there a red square?"]
RIGHT, WRONG = (PIL.Image.open(FOLDER / name).convert("RGB") for name in ("binding.png", "count.png"))
WORDS = "OPEN LATE"
SUITE = {
    "dpg": {"data": "dpg.csv", "first-row": True},
    "geneval2": {"data": "geneval2.jsonl"},
    "oneig": {"data": "oneig.csv", "questions": "Q_D"},
    "oneig_text": {"data": "text_content.csv", "grid": "1x1"},
    "longtext": {"data": "text_prompts.jsonl"},
    "cvtg2k": {"data": "CVTG-2K"},
    "compbench": {"data": "compbench", "phrases": "phrases.csv", "option": ["dsg.question=Is there {}"]},
    "tiif": {"data": "tiif"},
}
HEADLINES = {
    "dpg": "overall",
    "geneval2": "geometric",
    "oneig": "alignment",
    "oneig_text": "WAC",
    "longtext": "text",
    "cvtg2k": "word accuracy",
    "compbench": "color",
    "tiif": "overall short",
}


def sheet(*tiles):
    """A sheet of 2 x 2 pictures of one size."""
    side = RIGHT.width
    image = PIL.Image.new("RGB", (2 * side, 2 * side))
    for number, tile in enumerate(tiles):
        image.paste(tile.resize((side, side)), (number % 2 * side, number // 2 * side))
    return saved(image, "PNG")


def text(words):
    """A picture of words."""
    image = PIL.Image.new("RGB", (480, 480), "white")
    PIL.ImageDraw.Draw(image).text((60, 200), words, "black", PIL.ImageFont.load_default(64))
    return image


def table_of(*rows):
    """A CSV file of objects."""
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def lines_of(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


NUMBERED = {str(number): each for number, each in enumerate(QUESTIONS, 1)}
DATA = {
    "dpg.csv": table_of(
        *(
            {"item_id": "0", "text": PROMPT, "proposition_id": id, "dependency": 0}
            | {"tuple": "entity - whole (x)", "question_natural_language": each}
            for id, each in NUMBERED.items()
        )
    ),
    "geneval2.jsonl": lines_of(
        {"prompt": PROMPT, "atom_count": 2, "vqa_list": [[each, "Yes"] for each in QUESTIONS]}
        | {"skills": ["object", "object"]}
    ),
    "oneig.csv": table_of({"category": "General_Object", "id": "000", "prompt_en": PROMPT}),
    "Q_D/object.json": json.dumps({"000": {"question": NUMBERED, "dependency": {"1": [0], "2": [0]}}}),
    "text_content.csv": table_of({"id": "000", "prompt_en": "a sign", "text_content": WORDS}),
    "text_prompts.jsonl": lines_of({"prompt_id": 0, "category": "sign", "prompt": "a sign", "text": [WORDS]}),
    "CVTG-2K/CVTG/2.json": json.dumps({"data_list": [{"index": 0, "prompt": f"a sign '{WORDS}'"}]}),
    "compbench/color_val.txt": PROMPT,
    "phrases.csv": table_of(
        *({"item": "color/0", "phrase": each} for each in ("a green circle", "a red square"))
    ),
    "tiif/testmini_prompts/numeracy_prompts.jsonl": lines_of(
        {"type": "numeracy", "short_description": PROMPT, "long_description": PROMPT}
    ),
    "tiif/testmini_eval_prompts/numeracy_eval_prompts.jsonl": lines_of(
        {"type": "numeracy", "yn_question_list": QUESTIONS, "yn_answer_list": ["yes", "yes"]}
    ),
}


def pictures(name, shown, words):
    """A generator's folder in the authors' naming, with one picture, or sheets of it."""
    return {
        "dpg/0.png": sheet(shown, WRONG, shown, shown),
        "geneval2/0.png": saved(shown, "PNG"),
        f"oneig/object/{name}/000.webp": sheet(*[shown] * 4),
        f"oneig_text/text/{name}/000.png": saved(text(words), "PNG"),
        "longtext/0000_1.png": saved(text(words), "PNG"),
        "cvtg2k/CVTG/2/0.png": saved(text(words), "PNG"),
        f"compbench/color/samples/{PROMPT}_000000.png": saved(shown, "PNG"),
        f"tiif/numeracy/{name}/short_description/0.png": saved(shown, "PNG"),
    }


@pytest.fixture
def files(tmp_path):
    """The data, and the folders of a generator whose pictures are of the prompts, and of another."""
    for name, content in DATA.items():
        put(tmp_path / "data" / name, content)
    suite_file(tmp_path / "data" / "suite.toml", SUITE)
    for name, each in {"right": (RIGHT, WORDS), "wrong": (WRONG, "TEA")}.items():
        for path, content in pictures(name, *each).items():
            put(tmp_path / name / path, content)
    return tmp_path


def test_a_suite_runs_with_the_demo_models(run, files, demo_service):
    """
    Right pictures have the better figures, wrong ones are shown first, and the manifest is repeated.

    The report has no API key.
    """
    service = ("--base-url", demo_service.url, "--api-key", "secret-key")
    done = run("bench", "run", "right", "wrong", "--suite", "data/suite.toml", "--out", "report", *service)
    again = run("bench", "run", "--again", "report/manifest.json", *service)
    assert (0, 0) == (done.returncode, again.returncode), done.stderr + again.stdout + again.stderr
    tables = content_of(files / "report" / "tables.json")
    figures = {
        name: [row["mean"][HEADLINES[name]] for row in content["generators"]]
        for name, content in tables.items()
    }

    assert SUITE.keys() == figures.keys()
    assert not [name for name, (right, wrong) in figures.items() if right <= wrong]
    html = (files / "report" / "index.html").read_text("utf-8")
    cards = re.findall(r"<h2[^>]*>dpg</h2>.*?<figcaption>.*?<small>(.*?)</small>", html, re.DOTALL)
    assert ["row 2, 0.png#1, right"] == cards
    assert "mean nothing for real pictures" in html
    models = content_of(files / "report" / "manifest.json")["facts"]["models"]
    assert {"vqa", "clip", "ocr"} <= models.keys()
    assert ", 0 differ" in again.stdout
    assert not [path for path in (files / "report").glob("*.*") if "secret-key" in path.read_text("utf-8")]
