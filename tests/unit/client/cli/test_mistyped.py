"""A column, a file or a command that is not there: the error names the option, or what was probably meant."""

import json

import pytest

from scoregate.errors import NoColumnError
from scoregate.text import meant_file
from tests.support.pictures import png
from tests.unit.client.cli.served import Service, metric

ROWS = [{"file": f"{n}.png", "prompt": f"p {n}", "stars": n, "score": n / 10} for n in range(4)]


@pytest.fixture
def tables(tmp_path):
    """A table of pictures and scores, and a folder of pictures with a table of their prompts."""
    text = "".join(json.dumps(row) + "\n" for row in ROWS)
    (tmp_path / "rows.jsonl").write_text(text, "utf-8")
    (tmp_path / "photos").mkdir()
    for row in ROWS:
        (tmp_path / "photos" / row["file"]).write_bytes(png())
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("batch", "rows.jsonl", "-o", "o.jsonl"), "no column 'image'; there are {all}: --image-column NAME"),
        (
            ("batch", "rows.jsonl", "-o", "o.jsonl", "--image-column", "fiel"),
            "no column 'fiel'; there are {all}: --image-column file",
        ),
        (
            ("batch", "rows.jsonl", "-o", "o.jsonl", "--image-column", "file", "--prompt-column", "promt"),
            "no column 'promt'; there are {all}: --prompt-column prompt",
        ),
        (
            ("batch", "rows.jsonl", "-o", "o.jsonl", "--image-column", "file", "--metrics-column", "m"),
            "no column 'm'; there are {all}: --metrics-column NAME",
        ),
        (
            (
                "batch",
                "rows.jsonl",
                "-o",
                "o.jsonl",
                "--image-column",
                "file",
                "-m",
                "ocr",
                "--option-column",
                "ocr.text=star",
            ),
            "no column 'star'; there are {all}: --option-column ocr.text=stars",
        ),
        (
            ("batch", "photos", "-o", "o.jsonl", "--prompts", "rows.jsonl"),
            "row 1: no column 'image'; there are {all}: --image-column NAME",
        ),
        (
            ("report", "rows.jsonl", "-o", "p.html", "--image-column", "file", "--human", "star"),
            "no column 'star'; there are {some}prompt, image: --human stars",
        ),
        (
            ("calibrate", "rows.jsonl", "-m", "scor", "--pass-rate", "0.5"),
            "no column 'scor'; there are {all}: --metric score",
        ),
        (
            ("calibrate", "rows.jsonl", "--label", "star"),
            "no column 'star'; there are {all}: --label stars",
        ),
        (
            ("evaluate", "agreement", "--scores", "rows.jsonl", "-m", "score", "--human", "star"),
            "no column 'star'; there are {all}: --human stars",
        ),
        (
            ("evaluate", "means", "--scores", "rows.jsonl", "-m", "score", "--model", "modell"),
            "no column 'modell'; there are {all}: --generator NAME",
        ),
        (
            ("evaluate", "ordering", "--scores", "rows.jsonl", "-m", "scor", "--model", "file"),
            "no column 'scor'; there are {all}: --metric score",
        ),
        (
            ("policy", "fit", "rows.jsonl", "-m", "score", "--false-accept-rate", "0.1", "-o", "p.toml"),
            "no column 'good'; there are {all}: --label NAME",
        ),
    ],
)
def test_a_column_that_is_not_there_is_named_with_its_option(command, tables, arguments, said):
    """And with the column that is most like it, for each command that reads a table."""
    service = Service("clip@1", metrics={"vqascore": metric(), "ocr": metric()})
    status, _, err = command(service, *arguments)
    there = {"all": ", ".join(ROWS[0]), "some": "stars, score, "}

    assert (2, True) == (status, err.rstrip().endswith(said.format(**there))), err


def test_the_only_column_without_another_use_is_offered():
    """Whatever its name is."""
    fault = NoColumnError("rows.csv", "image", ["file", "prompt"], "image_column", ["prompt"])

    assert "rows.csv: no column 'image'; there are file, prompt: image_column='file'" == str(fault)


@pytest.mark.parametrize(
    "arguments",
    [
        ("batch", "{}", "-o", "o.jsonl"),
        ("calibrate", "{}"),
        ("evaluate", "alpha", "--ratings", "{}", "--unit", "a", "--rater", "b", "--rating", "c"),
        ("versus", "{}", "photos", "-p", "x"),
        ("reproduce", "{}"),
        ("report", "{}", "-o", "p.html"),
        ("decisions", "export", "{}", "-o", "o.csv"),
        ("policy", "fit", "{}", "--false-accept-rate", "0.1", "-o", "p.toml"),
        ("score", "{}", "-p", "x"),
        ("rank", "{}", "-p", "x"),
        ("compare", "{}", "-p", "x"),
        ("decide", "{}"),
    ],
)
def test_a_file_that_is_not_there_is_named_with_the_nearest_one(command, tables, arguments):
    """By every command that reads a file."""
    service = Service("clip@1", metrics={"vqascore": metric()})
    status, _, err = command(service, *(each.format("rwos.jsonl") for each in arguments))

    assert 2 == status
    assert "rwos.jsonl" in err
    assert "; did you mean " in err
    assert err.rstrip().endswith("rows.jsonl?"), err


def test_a_mistyped_folder_of_a_path_is_found_too(tables):
    """With what stands behind it."""
    assert f"; did you mean {tables}/photos/0.png?" == meant_file(tables / "fotos" / "0.png")
    assert "" == meant_file(tables / "something" / "else")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("scroe", "a.png"), "did you mean score?"),
        (("evaluate", "agrement"), "did you mean agreement?"),
        (("bench", "genevall"), "did you mean geneval?"),
        (("decisions", "exprt"), "did you mean export?"),
        (("policy", "fitt"), "did you mean fit?"),
        (("replay", "gekco"), "did you mean gecko?"),
        (("models", "unlaod"), "did you mean unload?"),
        (("score", "a.png", "--orient", "exfi"), "did you mean exif?"),
        (("score", "a.png", "--metrc", "ocr"), "unrecognized arguments: --metrc ocr; did you mean --metric?"),
        (("batch", "photos", "-o", "o.jsonl", "--htlm=o.html"), "did you mean --html?"),
        (
            ("evaluate", "agreement", "--scores", "s", "--metric", "m", "--humann", "h"),
            "did you mean --human?",
        ),
        (("score", "a.png", "--something-else"), "unrecognized arguments: --something-else"),
        (("score", "a.png", "-o", "o.jsonl"), "unrecognized arguments: -o o.jsonl"),
    ],
)
def test_a_mistyped_command_is_answered_with_the_nearest_one(run, arguments, said):
    """So is an option of a command, and one of an option's choices."""
    done = run(*arguments)

    assert (2, True) == (done.returncode, done.stderr.rstrip().endswith(said)), done.stderr
