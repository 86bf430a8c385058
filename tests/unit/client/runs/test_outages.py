"""Runs whose service goes away: it is outlasted, or the command says what is kept."""

from pathlib import Path

import httpx2 as httpx
import pytest

from scoregate.runs.batch import ITEMS_PER_REQUEST as SENT
from tests.support.pictures import png
from tests.support.shards import tar_of
from tests.unit.client.cli.conftest import command, run, shards
from tests.unit.client.cli.served import ROWS, Service, lines, metric

__all__ = ["command", "run", "shards"]
SAMPLE = {"png": png(), "txt": b"a prompt 1"}
LINE = "scoregate: connection_failed: http://test: refused; requests are retried for up to "
ON = "and the same command goes on from there"


class Absent(Service):
    """A service that refuses connections from its request *first*, until *back* is true."""

    def __init__(self, first, back):
        super().__init__("clip@1", metrics={"vqascore": metric()})
        self.first, self.back = first, back
        self.entry = {"details": {"vqascore": {"answer": "yes"}}}  # a report needs them

    def __call__(self, request):
        if request.url.path == "/score" and len(self.sent) >= self.first and not self.back():
            raise httpx.ConnectError("refused")
        return super().__call__(request)


@pytest.fixture
def data(tmp_path, command, shards):
    """Folders of two generators, beside a table and shards."""
    of_first = {f"{key:04}.{kind}": data for key in range(SENT - 1) for kind, data in SAMPLE.items()}
    tar_of(tmp_path / "s-0.tar", of_first)  # so that the first request has a row of the next shard, too
    for name in "AB":
        (tmp_path / name).mkdir()
        for number in range(ROWS):
            (tmp_path / name / f"{number:02}.png").write_bytes(png())
            (tmp_path / name / f"{number:02}.txt").write_text(f"prompt {number}", "utf-8")


CALLS = {
    "batch": (("batch", "rows.jsonl", "-o", "out.jsonl"), f"{SENT} rows are kept in out.jsonl"),
    "a table": (("batch", "rows.jsonl", "-o", "out.csv"), f"{SENT} rows are kept in out.csv"),
    "report": (("report", "rows.jsonl", "-o", "page.html"), f"{SENT} rows are kept in page.results.jsonl"),
    "versus": (("versus", "A", "B", "-o", "scores"), f"{SENT} rows are kept in scores/A.jsonl"),
    "shards": (("batch", "s-{0..2}.tar", "-o", "out"), "2 rows are kept in out/s-1.parquet.part.jsonl"),
}


@pytest.mark.parametrize("call", [call for call, _ in CALLS.values()], ids=CALLS)
def test_a_run_outlasts_an_outage_with_one_line(call, command, data, waited):
    """Of seconds or minutes: as long as its `--timeout`."""
    status, _, err = command(Absent(1, lambda: sum(waited) > 400), *call)

    assert (0 if "s-{0..2}.tar" not in call else 1) == status  # a sample is broken
    assert 1 == err.count(LINE) == err.count("retried")
    assert "kept in" not in err


@pytest.mark.parametrize(("call", "kept"), CALLS.values(), ids=CALLS)
def test_an_outage_that_ends_a_run_says_what_is_kept(call, kept, command, data, waited):
    """With the status of a service that is away, and the same command scores the rest."""
    away = Absent(1, lambda: False)
    alone = ("--concurrency", "1", "--timeout", "100")
    status, _, err = command(away, *call, *alone)

    assert 3 == status
    assert 1 == err.count(LINE)
    assert f"scoregate: stopped: {kept}, {ON}\n" in err
    away.back = lambda: True
    assert 3 != command(away, *call, *alone)[0]
    rows = {"versus": 2 * ROWS}.get(call[0], SENT + 2 if "out" in call else ROWS)
    assert rows == sum(len(each["items"]) for each in away.sent)


def test_other_models_end_a_run_that_keeps_its_rows(command, data):
    """The same command would fail again, so it does not go on from there."""
    service = Service("clip@1", "clip@2", metrics={"vqascore": metric()})
    status, _, err = command(service, "batch", "rows.jsonl", "-o", "out.jsonl", "--concurrency", "1")

    assert 2 == status
    assert f"scoregate: stopped: {SENT} rows are kept in out.jsonl\n" in err
    assert ON not in err
    assert SENT == len(lines(Path("out.jsonl")))


def test_a_mistake_before_the_first_row_says_nothing_of_rows(command, data):
    """There are none to keep."""
    service = Service("clip@1", metrics={"vqascore": metric()})
    status, _, err = command(service, "batch", "rows.jsonl", "-o", "out.jsonl", "--prompt-column", "text")

    assert (2, 1) == (status, err.count("\n"))


def test_a_run_with_errors_says_how_they_are_requested_again(command, data):
    """Finished shards need `--retry`, until it is given."""
    service, again = Service("clip@1", metrics={"vqascore": metric()}), "tries rows with errors again\n"
    call = ("batch", "s-{0..2}.tar", "-o", "out")

    assert f"the same command with --retry {again}" in command(service, *call)[2]
    assert f"the same command {again}" in command(service, *call, "--retry")[2]
    assert f"the same command {again}" in command(service, *call[:-1], "out.jsonl")[2]
    assert again not in command(service, "batch", "rows.jsonl", "-o", "all.jsonl")[2]
