"""The log of decisions: rows reach its file in batches, and what cannot be written is counted."""

import hashlib
import json
import logging
import sqlite3
import stat
from contextlib import closing

import pytest

from service.core.errors import NotReady
from service.core.settings import NotYet, SettingsError
from service.core.settings.scoring import DecisionSettings
from service.decisions.log import BUSY_S, DAY_S, MAX_WAITING, ROWS_PER_DELETE, WRITE_EVERY_S, DecisionLog
from service.decisions.schema import AuditRecord
from tests.support.decision_records import record

pytestmark = pytest.mark.anyio
NOW = 1_800_000_000.0


class Place:
    """A file of decisions, and the number of decisions that it lost."""

    def __init__(self, path):
        self.path, self.lost = path, 0

    def open(self, busy_s=BUSY_S, **settings):
        settings = DecisionSettings.model_validate({"log": f"sqlite:///{self.path}", **settings})
        return DecisionLog(settings, self.count, lambda: NOW, busy_s)

    def count(self, rows):
        self.lost += rows

    def rows(self, query="SELECT decision_id FROM decisions ORDER BY decision_id"):
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(query).fetchall()


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "decisions.sqlite3")


async def test_a_decision_is_a_row_with_its_scores_errors_and_models(place):
    """What is a mapping or a list is JSON; a missing id of the caller or key is NULL."""
    async with place.open() as log:
        log.record([record(errors={"dsg": "deadline_exceeded"}), record("d-2", caller_id="ünï", key=None)])
    columns = "decision_id, caller_id, key_name, scores, errors, skipped, models, prompt, prompt_digest"
    first, second = place.rows(f"SELECT {columns} FROM decisions ORDER BY decision_id")

    assert ("d-1", None, "shop") == first[:3]
    found = [{"vqascore": 0.91}, {"dsg": "deadline_exceeded"}, ["ocr"], {"vqa": "demo@1"}]
    assert found == [json.loads(text) for text in first[3:7]]
    assert ("a red dog", None) == first[7:]
    assert ("d-2", "ünï", None) == second[:3]
    assert 0 == place.lost


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [
        ("text", ("a red dog", None)),
        ("digest", (None, hashlib.sha256(b"a red dog").hexdigest())),
        ("off", (None, None)),
    ],
)
async def test_the_setting_says_what_is_kept_of_a_prompt(place, prompts, expected):
    """The text, its SHA-256, or nothing; and nothing of it stands elsewhere in the file."""
    async with place.open(prompts=prompts) as log:
        log.record([record()])

    assert [expected] == place.rows("SELECT prompt, prompt_digest FROM decisions")
    assert (prompts == "text") == (b"a red dog" in place.path.read_bytes())


async def test_rows_are_committed_while_the_service_runs(place):
    """At least once a second, so that a killed process loses no more; other processes read them."""
    async with place.open() as log:
        log.record([record()])
        await log._write_on()  # which the watcher calls

        assert [("d-1",)] == place.rows()
    assert WRITE_EVERY_S < 1


async def test_the_file_is_readable_by_its_owner_alone(place):
    """It holds what people wrote; likewise the files beside it."""
    async with place.open() as log:
        log.record([record()])
        await log._write_on()
        modes = {stat.S_IMODE(each.stat().st_mode) for each in place.path.parent.iterdir()}

    assert {0o600} == modes


async def test_a_file_has_one_log_at_a_time(place):
    """The second one ends at its start with the file's name; after the first one the file is free."""
    async with place.open():
        with pytest.raises(NotYet, match=f"{place.path} is in use by the process [0-9]+"):
            async with place.open():
                pass
    async with place.open():
        pass


@pytest.mark.parametrize("name", [":memory:", "file:log?mode=memory", "a?b#c.sqlite3"])
async def test_a_name_that_sqlite_takes_for_no_file_is_one(tmp_path, monkeypatch, name):
    """Rows in memory would be lost at the shut-down, and counted as written."""
    monkeypatch.chdir(tmp_path)
    place = Place(name)
    async with place.open() as log:
        log.record([record()])
    place.path = tmp_path / name

    assert [("d-1",)] == place.rows()


async def test_a_symbolic_link_is_the_file_that_it_names(place, tmp_path):
    """Two processes with two names of a file have one lock."""
    link = tmp_path / "link.sqlite3"
    link.symlink_to(place.path)
    async with place.open():
        with pytest.raises(NotYet, match=f"{place.path} is in use"):
            async with Place(link).open():
                pass


@pytest.mark.parametrize("replace", [False, True], ids=["deleted", "replaced"])
async def test_rows_for_a_file_that_is_gone_are_counted_and_no_label_is_stored(place, caplog, replace):
    """The open file has no name any more: nobody could read what is written to it."""
    async with place.open() as log:
        place.path.unlink()
        if replace:
            place.path.touch()
        log.record([record(), record("d-2")])
        await log._write_on()
        with pytest.raises(NotReady):
            await log.label("d-1", good=True, who=None)

    assert 2 == place.lost
    [line] = [each for each in caplog.records if each.name == "scoregate.decisions"]
    assert "deleted or moved" in line.getMessage()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b"no database" * 100),
        lambda path: sqlite3.connect(path).execute("PRAGMA user_version = 2").connection.close(),
        lambda path: path.mkdir(),
    ],
    ids=["other bytes", "another version", "a folder"],
)
async def test_a_file_that_is_no_log_ends_the_start_and_stays(place, spoil):
    """Nothing in it is replaced: it may be somebody's only copy."""
    spoil(place.path)
    before = place.path.read_bytes() if place.path.is_file() else None
    with pytest.raises(SettingsError, match=str(place.path)):
        async with place.open():
            pass

    assert before == (place.path.read_bytes() if place.path.is_file() else None)


async def test_a_full_disk_loses_rows_and_counts_them(place, caplog):
    """The log goes on, says so once, and writes again when there is room."""
    async with place.open() as log:
        full = log._file.connection
        [[pages]] = full.execute("PRAGMA page_count").fetchall()
        full.execute(f"PRAGMA max_page_count = {pages}").fetchall()
        for n in range(3):
            log.record([record(f"lost-{n}-{k}", prompt="a" * 4000) for k in range(5)])
            await log._write_on()
        full.execute("PRAGMA max_page_count = 1000000").fetchall()
        log.record([record("kept")])

    assert 15 == place.lost
    assert [("kept",)] == place.rows()
    [line] = [each for each in caplog.records if each.name == "scoregate.decisions"]
    assert (logging.WARNING, True) == (line.levelno, "full" in line.getMessage())


async def test_a_decision_that_is_written_twice_is_counted_and_harms_no_later_one(place):
    """Its whole batch is lost, as an id is unique; the next batch is written."""
    async with place.open() as log:
        log.record([record()])
        await log._write_on()
        log.record([record()])
        await log._write_on()
        log.record([record("d-2")])

    assert 1 == place.lost
    assert [("d-1",), ("d-2",)] == place.rows()


async def test_a_record_that_is_no_row_is_counted_and_harms_no_later_one(place):
    """As one with a value that JSON does not have."""
    async with place.open() as log:
        log.record([record(scores={"vqascore": object()})])
        await log._write_on()
        log.record([record("d-2")])

    assert 1 == place.lost
    assert [("d-2",)] == place.rows()


async def test_rows_wait_while_a_command_holds_the_file(place):
    """They are written once it is free; a label that waits too long is an error."""
    async with place.open(busy_s=0.01) as log:
        with closing(sqlite3.connect(place.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for n in range(3):
                log.record([record(f"d-{n}")])
                await log._write_on()
            with pytest.raises(NotReady):
                await log.label("d-0", True, None)
            other.execute("ROLLBACK")

    assert [("d-0",), ("d-1",), ("d-2",)] == place.rows()
    assert 0 == place.lost


async def test_the_result_of_an_audit_is_written_to_its_row(place):
    """Also if both come at once; one of an unknown row changes nothing."""
    async with place.open() as log:
        log.record([record(audited=True), record("d-2", audited=True), record("d-3")])
        log.end_audits([AuditRecord("d-1", "complete", {"vqascore": 0.91, "ocr": 0.5})])
        await log._write_on()
        log.end_audits([AuditRecord("elsewhere", "failed", {})])
    rows = place.rows("SELECT audit, scores FROM decisions ORDER BY decision_id")

    decided = [("selected", '{"vqascore":0.91}'), (None, '{"vqascore":0.91}')]
    assert [("complete", '{"vqascore":0.91,"ocr":0.5}'), *decided] == rows


async def test_the_result_of_an_audit_waits_for_its_row(place):
    """While a command holds the file neither is written, and then both are."""
    async with place.open(busy_s=0.01) as log:
        with closing(sqlite3.connect(place.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            log.record([record(audited=True)])
            log.end_audits([AuditRecord("d-1", "failed", {})])
            await log._write_on()
            other.execute("ROLLBACK")
            await log._write_on()
            log.record([record("d-2", audited=True)])
            await log._write_on()
            other.execute("BEGIN IMMEDIATE")
            log.end_audits([AuditRecord("d-2", "complete", {})])
            await log._write_on()
            other.execute("ROLLBACK")

    assert [("failed",), ("complete",)] == place.rows("SELECT audit FROM decisions ORDER BY decision_id")


async def test_a_full_disk_loses_the_results_of_audits(place, caplog):
    """Their rows stay selected, the log says so, and the next result is written."""
    async with place.open() as log:
        log.record([record(audited=True), record("d-2", audited=True)])
        await log._write_on()
        log._file.connection.execute("PRAGMA query_only = ON")
        log.end_audits([AuditRecord("d-1", "complete", {})])
        await log._write_on()
        log._file.connection.execute("PRAGMA query_only = OFF")
        log.end_audits([AuditRecord("d-2", "complete", {})])

    assert [("selected",), ("complete",)] == place.rows("SELECT audit FROM decisions ORDER BY decision_id")
    assert any("1 results of audits were not logged" in each.getMessage() for each in caplog.records)


async def test_results_of_audits_that_wait_are_bounded(place):
    """Those above the limit are lost, as rows are."""
    log = place.open()  # not started: nothing is written
    for _ in range(2):
        log.end_audits([AuditRecord("d-1", "complete", {})] * (MAX_WAITING - 1))

    assert MAX_WAITING == len(log._ended)


async def test_rows_that_wait_for_a_slow_disk_are_bounded(place):
    """Those above the limit are lost and counted, and the request does not wait."""
    log = place.open()  # not started: nothing is written
    log.record([record(f"d-{n}") for n in range(MAX_WAITING - 1)])
    log.record([record("last"), record("lost 1"), record("lost 2")])

    assert 2 == place.lost


async def test_a_label_is_stored_without_its_decision(place):
    """Another process may have that; `who` is optional."""
    async with place.open() as log:
        await log.label("elsewhere", True, "ann")
        await log.label("elsewhere", False, None)

        assert [("elsewhere", 1, "ann", NOW), ("elsewhere", 0, None, NOW)] == place.rows(
            "SELECT * FROM labels"
        )


async def test_old_rows_are_deleted_in_small_pieces(place):
    """Those older than `keep_days`, with old labels and samples; newer ones stay."""
    old, new = NOW - 3 * DAY_S, NOW - DAY_S
    assert ROWS_PER_DELETE <= 10_000
    async with place.open(keep_days=9) as log:
        log.record(
            [record(f"old {n}", time=old) for n in range(ROWS_PER_DELETE + 2)] + [record("new", time=new)]
        )
    with closing(sqlite3.connect(place.path)) as connection, connection:
        connection.execute("INSERT INTO labels VALUES ('old 1', 1, 'ann', ?)", (old,))
        connection.execute("INSERT INTO samples VALUES ('draw', 'new', 'accept', 0.5, ?)", (new,))
    async with place.open(keep_days=2) as log:  # the start deletes the first piece
        first = len(place.rows())
        await log._write_on()
        second = place.rows()

    assert (3, [("new",)]) == (first, second)
    assert [(0,)] == place.rows("SELECT count(*) FROM labels")
    assert [(1,)] == place.rows("SELECT count(*) FROM samples")
