"""Shards, scored by the command with models in this process; docs/guides/million-pictures.md."""

import json
import shlex

import pyarrow.parquet as pq
import pytest

import scoregate
from scoregate.runs.results import lines_of
from tests.support.pages import fences
from tests.support.paths import ROOT
from tests.support.pictures import png
from tests.support.shards import tar_of
from tests.unit.client.cli.conftest import run

__all__ = ["run"]

PROFILE = str(ROOT / "loadtest" / "fake.toml")
PAGE = "guides/million-pictures.md"


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """A store of question sets."""
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path}/questions.sqlite3")


def sample(key, colour):
    return {f"{key}.png": png(colour), f"{key}.json": json.dumps({"prompt": f"a {colour} square"}).encode()}


def test_a_sample_has_the_score_of_the_same_picture_in_a_folder(run, tmp_path):
    """A broken picture has an error of the service, a broken sample one of the command."""
    for name in ("pictures", "shards"):
        (tmp_path / name).mkdir()
    for colour in ("red", "lime"):
        (tmp_path / "pictures" / f"{colour}.png").write_bytes(png(colour))
        (tmp_path / "pictures" / f"{colour}.txt").write_text(f"a {colour} square", "utf-8")
    broken = {"bad.png": png()[:50], "bad.txt": b"x", "none.txt": b"no picture"}
    tar_of(tmp_path / "shards" / "a.tar", sample("red", "red") | broken)
    tar_of(tmp_path / "shards" / "b.tar", sample("lime", "lime"))
    local = ("-m", "vqascore", "--local", PROFILE)
    assert 1 == run("batch", "shards", "-o", "out", *local).returncode
    assert 0 == run("batch", "pictures", "-o", "pictures.jsonl", *local).returncode

    rows = [row for name in ("a", "b") for row in lines_of(tmp_path / "out" / f"{name}.parquet")]
    known = {row["prompt"]: row["scores"] for row in lines_of(tmp_path / "pictures.jsonl")}
    assert known == {row["prompt"]: row["scores"] for row in rows if row["scores"]}
    assert {"a.tar/bad": "image_undecodable", "a.tar/none": "unreadable_row"} == {
        row["image"]: row["errors"]["vqascore"]["code"] for row in rows if row["errors"]
    }


def test_read_yields_the_rows_for_score_many(tmp_path):
    """In order; a sample that cannot be read has an error with the shard and the key."""
    broken = {"none.txt": b"no picture", "empty.png": png(), "empty.txt": b" "}
    tar_of(tmp_path / "a.tar", sample("red", "red") | broken | sample("lime", "lime"))
    with scoregate.load(PROFILE) as gate:
        results = list(gate.score_many(scoregate.read_dataset(tmp_path / "a.tar"), "vqascore"))
        alone = gate.score(png("lime"), "a lime square", "vqascore").value

    assert ["a.tar/red", "a.tar/none", "a.tar/empty", "a.tar/lime"] == [each.id for each in results]
    assert [set(), {"vqascore"}, {"vqascore"}, set()] == [set(each.errors) for each in results]
    assert alone == pytest.approx(results[3].scores["vqascore"], abs=1e-5)
    errors = [results[place].errors["vqascore"] for place in (1, 2)]
    assert ["bad_image", "bad_image"] == [error.code for error in errors]
    assert "a.tar/none: it has no picture" in errors[0].detail
    assert "a.tar/empty, column prompt is empty" in errors[1].detail


def test_read_takes_folders_and_tables(tmp_path):
    """With options of a row for the metrics that are named, and one prompt for a folder without captions."""
    (tmp_path / "p.png").write_bytes(png())
    (tmp_path / "rows.jsonl").write_text('{"picture": "p.png", "text": "a", "ocr.text": "STOP"}\n')
    [row] = scoregate.read_dataset(
        tmp_path / "rows.jsonl", ["ocr"], image_column="picture", prompt_column="text"
    )
    [picture] = scoregate.read_dataset(str(tmp_path), prompt="a red square")

    assert scoregate.Item(prompt="a", image=png(), id="p.png", options={"ocr": {"text": "STOP"}}) == row
    assert scoregate.Item(prompt="a red square", image=png(), id="p.png") == picture


@pytest.mark.slow
def test_the_commands_of_the_page_score_its_shards(run, tmp_path, monkeypatch, capsys):
    """With one sample in each of the hundred, in place of ten thousand; all that the page lists are there."""
    (tmp_path / "shards").mkdir()
    for number in range(100):
        tar_of(tmp_path / "shards" / f"{number:03}.tar", sample("000017", "red" if number % 2 else "lime"))
    [(_, command)] = fences(PAGE, "sh")
    [(_, listed)] = fences(PAGE, "text")
    [(_, program)] = fences(PAGE, "python")
    monkeypatch.setenv("SCOREGATE_LOCAL", PROFILE)
    done = run(*shlex.split(command)[1:])

    assert 0 == done.returncode, done.stderr
    assert all((tmp_path / file).is_file() for file in listed.split())
    exec(compile(program, PAGE, "exec"), {})
    assert "100 rows\n" == capsys.readouterr().out
    scores = {
        line["image"]: line["scores"]["vqascore"]
        for number in range(100)
        for line in lines_of(tmp_path / "scores" / f"{number:03}.parquet")
    }
    kept = (tmp_path / "scores" / "kept.txt").read_text("utf-8").splitlines()
    assert [name for name, score in scores.items() if score >= 0.6] == kept
    assert "000.tar/000017" in scores
    assert 0 == run(*shlex.split(command)[1:]).returncode
    assert 100 == pq.read_table(sorted((tmp_path / "scores").glob("*.parquet"))).num_rows
