"""The file of results of `scoregate batch`, before a run goes on with it; and as a table for spreadsheets."""

import csv
import json
from pathlib import Path

import pytest

from scoregate.runs.results import lines_of
from tests.unit.client.cli.served import ROWS, Service, lines, metric

OUT = ("batch", "rows.jsonl", "-o", "out.jsonl", "-m", "vqascore")


@pytest.fixture
def service():
    """A service of one metric."""
    return Service("clip@1", metrics={"vqascore": metric()})


@pytest.mark.parametrize("after_ours", [False, True])
@pytest.mark.parametrize("data", [b"notes", b'{"my": "settings"}', b'{"row": 1, "name": "x', bytes(9)])
def test_what_does_not_begin_as_a_result_is_never_cut_off(command, service, data, after_ours):
    """It may be any file, although its last line has no end."""
    if after_ours:
        command(service, *OUT)
        data = Path("out.jsonl").read_bytes() + data
    Path("out.jsonl").write_bytes(data)
    status, _, err = command(service, *OUT)

    assert 2 == status
    assert err.rstrip().endswith("is no result of `scoregate batch`: name another file")
    assert data == Path("out.jsonl").read_bytes()


@pytest.mark.parametrize("whole", [0, 3])
def test_a_result_that_is_torn_is_scored_again(command, service, whole):
    """Also if it is the first one."""
    command(service, *OUT)
    before = Path("out.jsonl").read_bytes().splitlines(keepends=True)
    Path("out.jsonl").write_bytes(b"".join(before[:whole]) + before[whole][:50])
    status, _, err = command(service, *OUT)

    assert 0 == status
    assert f"{ROWS - whole} were requested" in err
    assert ROWS == len(lines(Path("out.jsonl")))


TO_CSV = ("batch", "own.jsonl", "-o", "out.csv", "-m", "vqascore")
CELLS = {
    "good": 1,
    "note": 'a "quote",\na line',
    "tags": ["a", None],
    "json": '{"a": 1}',
    "deep": "[" * 100_000,
    "nothing": None,
    "vqascore": 0.25,
    "models": "mine",
    "scores": "theirs",
    "columns": "Doric",
    "columns.scores": "a",
}


@pytest.fixture
def own(command, tmp_path):
    """Two rows with columns of their own, the second one without a picture."""
    rows = [{"image": image, "prompt": "=1+1, ünï", **CELLS} for image in ("p.png", "gone.png")]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def test_csv_has_a_column_for_each_metric_and_each_column_of_the_data_set(command, service, own):
    """An empty cell is no score; a name that is taken has another one."""
    assert 1 == command(service, *TO_CSV)[0]
    with Path("out.csv").open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)

    assert ("1", "p.png", "=1+1, ünï", "0.5", "") == tuple(
        first[name] for name in ("row", "image", "prompt", "vqascore", "errors")
    )
    assert ("", "unreadable_row") == (second["vqascore"], json.loads(second["errors"])["vqascore"]["code"])
    assert ("1", CELLS["note"], '["a", null]') == (first["good"], first["note"], first["tags"])
    assert ("0.25", "mine", "theirs") == tuple(
        first[f"columns.{name}"] for name in ("vqascore", "models", "scores")
    )


def test_csv_is_read_as_the_lines_that_were_written(command, service, own):
    """With the types of the columns, but for a text that is a number or JSON's null."""
    command(service, *TO_CSV)
    command(service, *(each.replace("out.csv", "out.jsonl") for each in TO_CSV))

    assert lines(Path("out.jsonl")) == list(lines_of(Path("out.csv")))
    before, _ = Path("out.csv").read_bytes(), service.sent.clear()
    assert 1 == command(service, *TO_CSV)[0]
    assert ([], before) == (service.sent, Path("out.csv").read_bytes())


@pytest.mark.parametrize("wrong", ["much", "nan", "1e999", '"1, 2"'])
def test_a_cell_of_csv_that_is_no_score_is_an_error(command, service, wrong):
    """It names the row and the metric."""
    command(service, *(each.replace("out.jsonl", "out.csv") for each in OUT))
    text = Path("out.csv").read_text("utf-8")
    Path("out.csv").write_text(text.replace(",0.5,", f",{wrong},", 1), "utf-8")
    status, _, err = command(service, *(each.replace("out.jsonl", "out.csv") for each in OUT))

    assert 2 == status
    assert "out.csv, row 1: vqascore of row 1 is no finite number" in err
