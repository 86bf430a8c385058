"""`scoregate.runs.score`: a data set scored from a program, as by `scoregate batch`."""

import json
from pathlib import Path

import httpx2 as httpx
import pytest

from scoregate import Client, runs
from scoregate.errors import InputError
from tests.support.pictures import png
from tests.support.shards import tar_of
from tests.unit.client.cli.served import Service, lines, metric

ROWS = 5


@pytest.fixture
def service():
    """A service of one metric."""
    return Service("clip@1", metrics={"vqascore": metric()})


@pytest.fixture
def client(service):
    """A client of the service."""
    with Client("http://test", transport=httpx.MockTransport(service), retries=0) as client:
        yield client


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a picture and a table of rows with blank lines between them."""
    monkeypatch.chdir(tmp_path)
    Path("p.png").write_bytes(png())
    rows = [json.dumps({"image": "p.png", "text": f"prompt {n}"}) for n in range(ROWS)]
    Path("rows.jsonl").write_text("\n\n".join(rows), "utf-8")
    return tmp_path


def test_a_client_scores_a_data_set_into_a_file(folder, client, service, capsys):
    """Settings are those of the command by their names, and nothing is printed."""
    outcome = runs.score("rows.jsonl", "out.jsonl", client=client, prompt_column="text")

    assert (ROWS, True) == (outcome.requested, outcome.complete)
    assert "5 of 5 rows have all scores" == outcome.summary.text
    assert [*outcome.lines()] == lines(Path("out.jsonl"))
    assert [1, 3, 5, 7, 9] == [line["row"] for line in outcome.lines()]
    assert ("", "") == capsys.readouterr()
    assert client.models()


def test_the_next_call_continues(folder, client, service):
    """As the command does, whose file it may be; a row that has its scores is not sent."""
    runs.score("rows.jsonl", "out.parquet", client=client, prompt_column="text")
    service.sent.clear()
    again = runs.score("rows.jsonl", "out.parquet", client=client, prompt_column="text")

    assert (0, []) == (again.requested, service.sent)
    assert ROWS == len([*again.lines()])


def test_shards_have_files_in_a_folder_and_one_series_of_lines(folder, client):
    """The lines are numbered over all files."""
    for number in range(2):
        members = {"1.png": png(), "1.txt": b"one", "2.png": png(), "2.txt": b"two"}
        tar_of(folder / f"s-{number}.tar", members)
    outcome = runs.score("s-{0..1}.tar", "out", client=client)

    assert ["out/s-0.parquet", "out/s-1.parquet"] == [*map(str, outcome.files)]
    assert [(1, "s-0.tar/1"), (2, "s-0.tar/2"), (3, "s-1.tar/1"), (4, "s-1.tar/2")] == [
        (line["row"], line["image"]) for line in outcome.lines()
    ]


def test_a_filter_is_a_text(folder, client):
    """Its file has the names of the rows that pass."""
    runs.score("rows.jsonl", "out.jsonl", client=client, prompt_column="text", filter="vqascore > 0.4")

    assert ["p.png"] * ROWS == Path("out.jsonl.kept.txt").read_text("utf-8").splitlines()
    with pytest.raises(ValueError, match="vqascore >"):
        runs.score("rows.jsonl", "out.jsonl", client=client, prompt_column="text", filter="vqascore >")


def test_a_client_is_strict_or_not_by_itself(folder, client):
    """The setting would not reach it; a client and other models are one too many."""
    for more in ({"strict": True}, {"local": "demo"}):
        with pytest.raises(InputError, match="a client has its own models, and is strict or not by itself"):
            runs.score("rows.jsonl", "out.jsonl", client=client, **more)


def test_an_unknown_setting_is_an_error(folder, client):
    """A misspelt one would be silently the default."""
    with pytest.raises(InputError, match="promt_column: no such setting; did you mean prompt_column"):
        runs.score("rows.jsonl", "out.jsonl", client=client, promt_column="text")
