"""Cells with several tags, from a data set to the figures and the page."""

import json
import re

import pytest

from tests.unit.client.cli.served import Service, lines, metric

TAGS = (["color", "shape"], ["color"], [])


@pytest.fixture
def tagged(command, written):
    """The results of `batch` over rows with tags, as the test names the files."""

    def tagged(name="rows.jsonl", out="out.jsonl", tags=TAGS):
        rows = [
            {"image": "p.png", "prompt": f"p {n}", "model": "x", "skill": cell} for n, cell in enumerate(tags)
        ]
        if name.endswith(".csv"):
            rows = [row | {"skill": json.dumps(row["skill"])} for row in rows]
        service = Service("clip@1", metrics={"vqascore": metric()})
        assert 0 == command(service, "batch", written(rows, name), "-o", out)[0]
        return service

    return tagged


@pytest.mark.parametrize("out", ["out.jsonl", "out.parquet", "out.csv"])
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.parquet"])
def test_a_row_of_results_counts_under_each_tag_of_its_data_set(command, tagged, name, out):
    """The next run, which reads the results, requests nothing."""
    tagged(name, out)
    again = tagged(name, out)
    command_line = ("evaluate", "means", "--scores", out, "--metric", "vqascore", "--model", "model")
    _, said, _ = command(again, *command_line, "--by", "skill", "--json")
    found = json.loads(said)

    assert [] == again.sent
    assert {"color": 2, "shape": 1} == {tag: each["rows"] for tag, each in found["by"].items()}
    assert 1 == found["untagged"]


def test_a_column_of_lists_and_texts_is_text_in_parquet(command, tagged):
    """Lists as JSON, so that each tag still counts."""
    service = tagged(out="out.parquet", tags=(["color", None], "color", None))
    command_line = ("evaluate", "means", "--scores", "out.parquet", "--metric", "vqascore")
    _, said, _ = command(service, *command_line, "--model", "model", "--by", "skill", "--json")

    assert {"color": 2} == {tag: each["rows"] for tag, each in json.loads(said)["by"].items()}


def test_numbers_in_lists_that_json_lacks_are_empty(tagged, tmp_path):
    """As outside lists."""
    tagged(tags=([0.5, float("nan")],))

    assert [[0.5, None]] == [line["columns"]["skill"] for line in lines(tmp_path / "out.jsonl")]


def test_a_page_has_a_row_for_each_tag(command, tagged, tmp_path):
    """A picture counts under each of its tags, and one without tags is not lost."""
    service = tagged()
    given = ("--results", "out.jsonl", "--offline", "--skill", "skill")
    status, _, _ = command(service, "report", "rows.jsonl", "-o", "page.html", *given)
    page = (tmp_path / "page.html").read_text("utf-8")
    counts = {
        name: re.search(rf"<span>{re.escape(name)}</span>.*?<td>(\d+)</td>", page, re.DOTALL)
        for name in ("color", "shape", "(empty)")
    }

    assert 0 == status
    assert {"color": "2", "shape": "1", "(empty)": "1"} == {
        name: found and found[1] for name, found in counts.items()
    }
