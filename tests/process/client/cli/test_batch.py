"""`scoregate batch`: every row has a line, whatever stops the run in between."""

import json
import re

import pyarrow.parquet as pq
import pytest

from scoregate.runs.results import every_line_of
from tests.support.pictures import png
from tests.unit.client.cli.conftest import COLOURS

NAMES = sorted((*COLOURS, "broken"))


@pytest.fixture
def batch(scoregate, tmp_path):
    """The status, what stderr says, and the lines of OUT."""

    def batch(*arguments, out="out.jsonl"):
        done = scoregate("batch", *arguments, "-o", out)
        path = tmp_path / out
        lines = pq.read_table(path).to_pylist() if path.suffix == ".parquet" else list(every_line_of(path))
        assert not done.stdout
        return done.returncode, done.stderr, lines

    return batch


def test_each_row_gets_a_line_in_order(batch, pictures):
    """With its scores, or the error of each metric; one row without a score is status 1."""
    status, said, lines = batch("pictures", "-m", "vqascore", "-m", "clipscore")
    broken, *good = sorted(lines, key=lambda line: bool(line["scores"]))

    assert 1 == status
    assert [f"{name}.png" for name in NAMES] == [line["image"] for line in lines]
    assert [1, 2, 3, 4, 5] == [line["row"] for line in lines]
    assert {"vqascore", "clipscore"} == broken["errors"].keys()
    assert {"image_undecodable"} == {error["code"] for error in broken["errors"].values()}
    assert all({"vqascore", "clipscore"} == line["scores"].keys() and not line["errors"] for line in good)
    assert all({"vqa", "clip"} == line["models"].keys() for line in lines)
    assert "4 of 5 rows have all scores; 5 were requested in this run" in said
    assert "1 image_undecodable" in said


@pytest.mark.parametrize("out", ["out.jsonl", "out.parquet", "out.csv"])
def test_what_is_held_is_not_asked_again_and_errors_are(batch, pictures, out):
    """Then all rows have their scores, and the status is 0."""
    _, _, first = batch("pictures", out=out)
    (pictures / "broken.png").write_bytes(png("black"))
    status, said, second = batch("pictures", out=out)
    _, third_said, third = batch("pictures", out=out)

    assert 0 == status
    assert "5 of 5 rows have all scores; 1 were requested" in said
    assert first[2:] == second[2:]
    assert "5 of 5 rows have all scores; 0 were requested" in third_said
    assert second == third


def test_a_run_that_was_killed_goes_on_where_it_stopped(batch, pictures, tmp_path):
    """Lines that are there stay as they are; half a line is scored again."""
    _, _, whole = batch("pictures")
    blue = whole[0]
    assert "blue.png" == blue["image"]
    blue["scores"]["vqascore"] = 2.0  # which no model gave, so that it shows whether it stays
    (tmp_path / "out.jsonl").write_text(f"{json.dumps(blue)}\n{json.dumps(whole[2])[:80]}", "utf-8")
    _, said, lines = batch("pictures")

    assert [blue, *whole[1:]] == lines
    assert "4 were requested" in said


def test_a_parquet_run_that_was_killed_goes_on_from_the_file_beside_it(batch, pictures, tmp_path):
    """That file is gone when the run is complete."""
    _, _, whole = batch("pictures")
    whole[0]["scores"]["vqascore"] = 2.0
    (tmp_path / "out.parquet.part.jsonl").write_text(
        f"{json.dumps(whole[0])}\n{json.dumps(whole[1])[:40]}", "utf-8"
    )
    _, said, lines = batch("pictures", out="out.parquet")

    assert {"vqascore": 2.0} == lines[0]["scores"]
    assert "4 were requested" in said
    assert not (tmp_path / "out.parquet.part.jsonl").exists()


def test_a_picture_that_changed_is_asked_again(batch, pictures):
    """Its name is still the same, and its score would be another picture's."""
    _, _, before = batch("pictures")
    (pictures / "red.png").write_bytes(png("black"))
    _, said, after = batch("pictures")
    changed = [old["image"] for old, new in zip(before, after, strict=True) if old != new]

    assert ["red.png"] == changed
    assert "2 were requested" in said  # the broken one as well


def test_rows_may_move_and_their_columns_change(batch, pictures, tmp_path):
    """A new row in front asks for itself alone; labels are those of now."""
    rows = [{"image": f"pictures/{name}.png", "prompt": f"a {name} square", "good": 0} for name in COLOURS]
    table = tmp_path / "rows.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    batch("rows.jsonl")
    rows = [rows[0] | {"prompt": "new"}, *(row | {"good": 1} for row in rows)]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    _, said, lines = batch("rows.jsonl")

    assert "5 of 5 rows have all scores; 1 were requested" in said
    assert [1, 2, 3, 4, 5] == [line["row"] for line in lines]
    assert [0, 1, 1, 1, 1] == [line["columns"]["good"] for line in lines]


def test_lines_of_rows_that_are_gone_stay_at_the_end(batch, pictures):
    """Nothing that was paid for is thrown away."""
    _, _, before = batch("pictures")
    (pictures / "blue.png").unlink()
    (pictures / "blue.txt").unlink()
    _, said, after = batch("pictures")

    assert [*range(1, len(before)), 0] == [line["row"] for line in after]
    assert "blue.png" == after[-1]["image"]
    assert before[0]["scores"] == after[-1]["scores"]
    assert "1 lines are of no row of the data set" in said


def test_scores_of_another_kind_are_not_mixed_in(scoregate, batch, pictures, tmp_path):
    """Status 2, and OUT stays as it was."""
    batch("pictures")
    before = (tmp_path / "out.jsonl").read_bytes()
    done = scoregate("batch", "pictures", "-o", "out.jsonl", "--option", "vqascore.output=logit")

    assert 2 == done.returncode
    assert "out.jsonl, line 1 was scored with the options" in done.stderr
    assert before == (tmp_path / "out.jsonl").read_bytes()


def test_a_row_that_cannot_be_read_is_an_error_in_out(batch, pictures, tmp_path):
    """It names the row and the column; the rows around it are scored."""
    good = '{"image": "pictures/red.png", "prompt": "a red square"}'
    (tmp_path / "empty.png").touch()
    bad = ["{half", '{"image": "pictures/red.png"}', '{"image": "gone.png", "prompt": "\\u2603"}']
    bad.append('{"image": "empty.png", "prompt": "x"}')
    (tmp_path / "rows.jsonl").write_text("\n".join([good, *bad, good]), "utf-8")
    status, _, lines = batch("rows.jsonl")
    errors = [line["errors"]["vqascore"] for line in lines[1:-1]]

    assert 1 == status
    assert {"unreadable_row"} == {error["code"] for error in errors}
    assert errors[0]["detail"].startswith("row 2: not JSON")
    assert [
        "row 3, column prompt is missing",
        "row 4, gone.png: no such file",
        "row 5, empty.png: the picture is empty",
    ] == [error["detail"] for error in errors[1:]]
    assert lines[0]["scores"] == lines[-1]["scores"]


ANCHORED = ("-m", "judge", "--option", "judge.rubric=anchored_likeness")


def test_references_and_sources_are_sent_where_a_metric_uses_them(batch, pictures, tmp_path):
    """Other references are asked again; a metric that uses none gets none, whatever the columns hold."""
    red, green, blue = (f"pictures/{colour}.png" for colour in ("red", "green", "blue"))

    def rows(references, source=None):
        row = {"image": red, "prompt": "a red square", "references": references}
        lines = [json.dumps(row), json.dumps(row | {"references": [], "source": source})]
        (tmp_path / "rows.jsonl").write_text("\n".join(lines), "utf-8")

    rows([green, blue])
    _, _, [first, without] = batch("rows.jsonl", *ANCHORED)
    _, _, [same, _] = batch("rows.jsonl", *ANCHORED)
    rows([blue])
    _, said, [other, _] = batch("rows.jsonl", *ANCHORED)
    rows("no such file", "nor this")
    status, _, unused = batch("rows.jsonl", "-m", "vqascore", out="unused.jsonl")
    _, _, [broken, _] = batch("rows.jsonl", *ANCHORED)
    rows([], green)
    _, _, [_, edited] = batch(
        "rows.jsonl", "-m", "judge", "--option", "judge.rubric=editing", out="edited.jsonl"
    )

    assert 1 <= first["scores"]["judge"] <= 5
    assert "missing_picture" == without["errors"]["judge"]["code"]
    assert first == same
    assert "2 were requested" in said
    assert first["sha256"] != other["sha256"]
    assert first["scores"] != other["scores"]
    assert (0, True) == (status, all(line["scores"] for line in unused))
    assert "column references: " in broken["errors"]["judge"]["detail"]
    assert "no such file" in broken["errors"]["judge"]["detail"]
    assert 1 <= edited["scores"]["judge"] <= 5


def test_what_explains_the_scores_is_kept_on_request(batch, pictures):
    """A run that asks for it later asks again, and the scores are the same."""
    _, _, plain = batch("pictures")
    _, _, explained = batch("pictures", "--explain")

    assert not any("details" in line for line in plain)
    assert all("p_yes" in line["details"]["vqascore"] for line in explained if line["scores"])
    assert [line["scores"] for line in plain] == [line["scores"] for line in explained]


def test_parquet_has_columns_for_scores_errors_and_the_data_sets_own(batch, pictures, tmp_path):
    """Numbers stay numbers, and mixed ones become text; a prompt that is no text stays readable."""
    rows = [
        {"image": "pictures/red.png", "prompt": "a red square", "good": 1, "mixed": 1, "part": 0.5},
        {"image": "pictures/red.png", "prompt": "\ud800", "good": None, "mixed": "x", "part": 1},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    _, _, (first, second) = batch("rows.jsonl", out="out.parquet")

    assert {"good": 1, "mixed": "1", "part": 0.5} == first["columns"]
    assert {"good": None, "mixed": "x", "part": 1.0} == second["columns"]
    assert first["scores"]["vqascore"] > 0
    assert second["scores"]["vqascore"] is None
    assert "unreadable_row" == second["errors"]["vqascore"]["code"]
    assert "?" == second["prompt"]


def test_calibrate_reads_what_batch_writes(scoregate, batch, pictures, tmp_path):
    """With the labels that the data set had."""
    rows = [
        {"image": f"pictures/{name}.png", "prompt": "a red square", "good": name == "red"} for name in COLOURS
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for out in ("out.jsonl", "out.parquet", "out.csv"):
        batch("rows.jsonl", out=out)
        done = scoregate("calibrate", out, "--label", "good", "--json")

        assert {"good": 1, "bad": 3} == json.loads(done.stdout)["labels"]


def test_the_contact_sheet_shows_the_worst_first(batch, pictures, tmp_path):
    """Those without a score before all; each with its picture, and what others wrote escaped."""
    (pictures / "red.txt").write_text('<script>alert("x")</script>', "utf-8")
    _, _, lines = batch("pictures", "--html", "sheet.html")
    page = (tmp_path / "sheet.html").read_text("utf-8")
    scores = {line["image"]: line["scores"].get("vqascore", -1) for line in lines}

    assert sorted(scores, key=scores.__getitem__) == re.findall(r"<small>row \d+, (.*?)</small>", page)
    assert 4 == page.count('<img src="data:image/jpeg;base64,')
    assert "<script" not in page
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;" in page
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")
