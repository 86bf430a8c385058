"""Files that never end, bombs, and manifests that are none: one line and status 2, for little."""

import gzip
import json
import os
import tracemalloc
from pathlib import Path

import pytest

from scoregate.errors import BadImageError, InputError
from scoregate.images import encoded
from scoregate.records import json_lines, separated
from tests.unit.client.cli.served import Service, metric

OUT = ("-o", "out.jsonl", "-m", "vqascore")
BOM = b"\xef\xbb\xbf"


@pytest.fixture
def service():
    """A service of one metric."""
    return Service("clip@1", metrics={"vqascore": metric()})


@pytest.fixture(params=["a device", "a pipe"])
def endless(request, tmp_path):
    """A file that is read for ever, or until somebody writes to it."""
    path = tmp_path / "endless"
    path.symlink_to("/dev/zero") if request.param == "a device" else os.mkfifo(path)
    return path


COMMANDS = {
    "score": ("score", "{}", "-p", "x"),
    "rank": ("rank", "{}", "-p", "x"),
    "batch": ("batch", "{}.csv", *OUT),
    "a sweep": ("batch", "rows.jsonl", *OUT, "--sweep", "vqascore.question={}"),
    "reproduce": ("reproduce", "{}"),
    "the report's results": ("report", "rows.jsonl", "--results", "{}.jsonl", "-o", "page.html"),
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_a_device_or_a_pipe_is_not_read(command, service, endless, arguments):
    """Whatever it was named as."""
    for suffix in (".csv", ".jsonl"):
        endless.with_suffix(suffix).symlink_to(endless)
    status, _, err = command(service, *(each.format(endless.name) for each in arguments))

    assert (2, []) == (status, service.sent)
    [line] = err.splitlines()
    assert line.startswith("scoregate: endless")
    assert line.endswith(": not a regular file")


def test_a_device_as_the_results_of_a_manifest_is_not_read(command, service, endless):
    """Nor as its data set."""
    command(service, "batch", "rows.jsonl", *OUT)
    written = json.loads(Path("out.jsonl.manifest.json").read_bytes())
    endless.with_suffix(".csv").symlink_to(endless)
    for change in ({"results": "endless"}, {"dataset": written["dataset"] | {"path": "endless.csv"}}):
        Path("m.json").write_text(json.dumps(written | change), "utf-8")
        status, _, err = command(service, "reproduce", "m.json")
        assert 2 == status
        assert err.splitlines()[-1].endswith(": not a regular file")


def test_the_client_does_not_read_a_device_or_a_pipe(endless):
    """As a picture."""
    with pytest.raises(BadImageError, match="not a regular file"):
        encoded(endless)


@pytest.mark.parametrize("reader", [separated, json_lines])
def test_a_line_of_a_bomb_is_not_read_to_its_end(reader, tmp_path):
    """64 MB from 64 kB, where a line may have one."""
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"image,prompt\np.png," + b"a" * (64 * 2**20)))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"bomb.gz: a line has more than 1048576 characters$"):
            list(reader(path, 2**20))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 16 * 2**20


WRONG = {
    "options of no metric": {"options": {"vqascore.question": "x"}},
    "a path that no file can have": {"results": "out\0.jsonl"},
    "half a character": {"results": "out\ud800.jsonl"},
}
WRONG_DATASET = {
    "a hash that is a number": {"sha256": 5},
    "a column that is a number": {"prompt_column": 5},
    "a sweep that is a text": {"sweep": "vqascore.question=x"},
    "a sweep of numbers": {"sweep": [5]},
    "a matrix that is a text": {"matrix": "yes"},
    "an option column of numbers": {"option_column": [5]},
}


@pytest.mark.parametrize("change", [*WRONG.values(), *WRONG_DATASET.values()], ids=[*WRONG, *WRONG_DATASET])
def test_a_manifest_with_a_wrong_part_is_one_line(command, service, change):
    """As one that is no manifest at all."""
    command(service, "batch", "rows.jsonl", *OUT)
    written = json.loads(Path("out.jsonl.manifest.json").read_bytes())
    changed = change if change in WRONG.values() else {"dataset": written["dataset"] | change}
    Path("m.json").write_text(json.dumps(written | changed), "utf-8")
    status, _, err = command(service, "reproduce", "m.json")

    assert 2 == status
    assert ["scoregate: m.json: this is no manifest of `scoregate batch` or `report`"] == err.splitlines()


def test_a_byte_order_mark_before_json_is_skipped(command, service):
    """In a table, in results and in a manifest, as Windows' editors write it."""
    command(service, "batch", "rows.jsonl", *OUT)
    for name in ("rows.jsonl", "out.jsonl", "out.jsonl.manifest.json"):
        Path(name).write_bytes(BOM + Path(name).read_bytes())

    assert 0 == command(service, "batch", "rows.jsonl", *OUT)[0]
    assert 0 == command(service, "reproduce", "out.jsonl.manifest.json")[0]
