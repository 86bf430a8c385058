"""Pictures without prompts, for metrics that read none."""

import json

import pytest

import scoregate
from tests.support.pictures import png
from tests.unit.client.cli.served import Service, lines, metric

METRICS = {"vqascore": metric(), "aesthetic": metric() | {"reads_prompt": False}}
BATCH = ("-m", "aesthetic", "--no-prompt", "-o", "out.jsonl")


@pytest.fixture
def service():
    """A service of a metric that reads the prompt, and of one that does not."""
    return Service("clip@1", metrics=METRICS)


@pytest.fixture
def folder(tmp_path):
    """A folder of two pictures, of which one has a caption."""
    (tmp_path / "folder").mkdir()
    for name in ("a.png", "b.png"):
        (tmp_path / "folder" / name).write_bytes(png())
    (tmp_path / "folder" / "a.txt").write_text("a dog", "utf-8")
    return tmp_path / "folder"


def test_a_folder_without_captions_is_scored(command, service, folder, tmp_path):
    """No prompt is sent; the next run has nothing to do, and the manifest reproduces it."""
    status, _, err = command(service, "batch", "folder", *BATCH)
    sent = [item for request in service.sent for item in request["items"]]
    again, _, repeated = command(service, "batch", "folder", *BATCH)
    reproduced, out, _ = command(service, "reproduce", "out.jsonl.manifest.json", "--json")

    assert (0, 0, 0) == (status, again, reproduced), err
    assert [False, False] == ["prompt" in item for item in sent]
    found = lines(tmp_path / "out.jsonl")
    assert [("a.png", None, 0.5), ("b.png", None, 0.5)] == [
        (line["image"], line["prompt"], line["scores"]["aesthetic"]) for line in found
    ]
    assert "0 were requested in this run" in repeated
    assert 2 == json.loads(out)["metrics"]["aesthetic"]["compared"]


def test_a_table_needs_no_column_of_prompts(command, service, folder, tmp_path):
    """And the page of `scoregate report` shows the scores that `batch` has written."""
    rows = [{"image": f"folder/{name}.png", "kind": name, "rating": 1} for name in "ab"]
    (tmp_path / "plain.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    refused, _, err = command(service, "batch", "plain.jsonl", "-m", "aesthetic", "-o", "out.jsonl")
    status, _, _ = command(service, "batch", "plain.jsonl", *BATCH)
    asked = len(service.sent)
    of_it = ("--results", "out.jsonl", "--offline", "--human", "rating", "-o", "page.html")
    reported, _, told = command(service, "report", "plain.jsonl", *BATCH[:3], *of_it)

    assert (2, 0, 0) == (refused, status, reported), told
    assert asked == len(service.sent)
    assert "0.5" in (tmp_path / "page.html").read_text("utf-8")
    assert "no column 'prompt'" in err
    assert ["a", "b"] == [line["columns"]["kind"] for line in lines(tmp_path / "out.jsonl")]


def test_a_metric_that_reads_the_prompt_is_refused(command, service, folder):
    """Before any row is sent."""
    status, _, err = command(service, "batch", "folder", *BATCH, "-m", "vqascore")

    assert (2, []) == (status, service.sent)
    assert "--no-prompt: vqascore cannot score a picture without its prompt" in err


@pytest.mark.parametrize("other", [("-p", "a dog"), ("--prompt-column", "text"), ("--matrix",)])
def test_arguments_about_prompts_are_refused(command, service, folder, other):
    status, _, err = command(service, "batch", "folder", *BATCH, *other)

    assert 2 == status
    assert "--no-prompt reads no prompts: leave out" in err


def test_one_picture_is_scored_without_a_prompt(command, service):
    """By `scoregate score` without -p."""
    status, out, _ = command(service, "score", "p.png", "-m", "aesthetic")

    assert (0, True) == (status, "0.5" in out)
    assert [{"image"}] == [{*item} for request in service.sent for item in request["items"]]


def test_items_are_read_without_prompts(folder):
    """By `scoregate.read_dataset`."""
    assert [None, None] == [item.prompt for item in scoregate.read_dataset(folder, no_prompt=True)]
