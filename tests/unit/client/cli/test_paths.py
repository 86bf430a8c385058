"""A data set of a stranger: only pictures leave, and only those of its folder."""

import json

import pytest

from tests.support.pictures import png
from tests.unit.client.cli.served import Service, lines, metric

BATCH = ("batch", "set", "-o", "out.jsonl")
TABLE = ("batch", "set/rows.csv", "-o", "out.jsonl")
OUTSIDE = "lies outside the data set's folder, and --any-path is not given"
NO_PICTURE = "the file is no picture by its first bytes"


@pytest.fixture
def folder(command, tmp_path):
    """The data set's folder, with a picture of its own; the one beside it is private."""
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "own.png").write_bytes(png("red"))
    (tmp_path / "private.png").write_bytes(png("blue"))
    (folder / "secret.png").write_text("root:x:0:0:root:/root:/bin/bash")
    return folder


@pytest.fixture
def service():
    """It scores whatever it gets."""
    return Service("clip@1", metrics={"vqascore": metric(), "judge": metric() | {"uses": ["references"]}})


def table(folder, *images):
    """Rows of these pictures."""
    rows = "".join(f"{image},prompt {n}\n" for n, image in enumerate(images))
    (folder / "rows.csv").write_text(f"image,prompt\n{rows}")


def details(tmp_path):
    """What is wrong with each row, by its picture."""
    return {
        line["image"]: error["detail"].partition(": ")[2]
        for line in lines(tmp_path / "out.jsonl")
        for error in line["errors"].values()
    }


def test_a_table_may_not_name_files_elsewhere(command, service, folder, tmp_path):
    """By whole paths, by dots or through a link; the rows are errors that say so, the others are scored."""
    (folder / "link.png").symlink_to(tmp_path / "private.png")
    images = [
        "/etc/passwd",
        "/proc/self/environ",
        "../private.png",
        str(tmp_path / "private.png"),
        "link.png",
    ]
    table(folder, *images, "own.png")
    status, _, _ = command(service, *TABLE)

    assert 1 == status
    assert dict.fromkeys(images, OUTSIDE) == details(tmp_path)
    assert ["prompt 5"] == [item["prompt"] for asked in service.sent for item in asked["items"]]


def test_with_any_path_pictures_elsewhere_are_sent_and_nothing_else(command, service, folder, tmp_path):
    """Text is none, wherever it lies."""
    table(folder, "/etc/passwd", "/proc/self/environ", "../private.png", "secret.png")
    command(service, *TABLE, "--any-path")

    assert dict.fromkeys(["/etc/passwd", "/proc/self/environ", "secret.png"], NO_PICTURE) == details(tmp_path)
    assert ["prompt 2"] == [item["prompt"] for asked in service.sent for item in asked["items"]]


def test_the_folder_may_be_reached_through_a_link(command, service, folder, tmp_path):
    """What lies in it lies below it."""
    (tmp_path / "other").symlink_to(folder)
    table(folder, "own.png")

    assert 0 == command(service, "batch", "other/rows.csv", "-o", "out.jsonl")[0]


def test_a_folder_with_captions_holds_no_links_to_files_elsewhere(command, service, folder, tmp_path):
    """Neither pictures nor captions, which would be sent as prompts."""
    (folder / "link.png").symlink_to(tmp_path / "private.png")
    (folder / "own.txt").symlink_to("/proc/self/environ")
    for name in ("link", "secret"):
        (folder / f"{name}.txt").write_text("a square")
    command(service, *BATCH)

    found = details(tmp_path)
    assert OUTSIDE == found["link.png"]
    assert NO_PICTURE == found["secret.png"]
    assert f"its caption own.txt: {OUTSIDE}" in next(
        line["errors"]["vqascore"]["detail"]
        for line in lines(tmp_path / "out.jsonl")
        if line["image"] == "own.png"
    )
    assert [] == service.sent


def test_pictures_beside_a_row_are_held_to_the_same(command, service, folder, tmp_path):
    """References and sources that a metric looks at."""
    rows = [
        {"image": "own.png", "prompt": "a", "references": ["own.png", "../private.png"]},
        {"image": "own.png", "prompt": "b", "references": ["secret.png"]},
        {"image": "own.png", "prompt": "c", "references": ["own.png"]},
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command(service, "batch", "set/rows.jsonl", "-o", "out.jsonl", "-m", "judge")
    first, second, third = (
        line["errors"].get("judge", {}).get("detail", "") for line in lines(tmp_path / "out.jsonl")
    )

    assert f"column references {OUTSIDE}" in first
    assert f"column references: a {NO_PICTURE.removeprefix('the ')}" in second
    assert "" == third
    assert ["c"] == [item["prompt"] for asked in service.sent for item in asked["items"]]


def test_a_report_shows_no_picture_from_elsewhere(command, service, folder, tmp_path):
    """Neither asked nor drawn, even where the results have a score of it."""
    table(folder, "own.png", "../private.png")
    command(service, *TABLE, "--any-path")
    report = ("report", "set/rows.csv", "-o", "page.html", "--results", "out.jsonl", "--offline")
    command(service, *report)
    without = (tmp_path / "page.html").read_text("utf-8").count("<img")
    command(service, *report, "--any-path")

    assert (1, 2) == (without, (tmp_path / "page.html").read_text("utf-8").count("<img"))
