"""The log of decisions of processes that are killed, or that share its file by mistake."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

from tests.process.test_starts import LATER, ended
from tests.support.double import faulty
from tests.support.fake_service import COMMAND, fake_service
from tests.support.paths import ROOT
from tests.support.pictures import b64, png
from tests.support.service import until

DECIDING = """
import asyncio, sys
from itertools import count
from service.core.settings.scoring import DecisionSettings
from service.decisions.log import DecisionLog
from tests.support.decision_records import record

async def decide_on():
    async with DecisionLog(DecisionSettings(log=f"sqlite:///{sys.argv[1]}"), print) as log:
        for n in count():
            log.record([record(f"d-{n}")])
            await asyncio.sleep(0.001)

asyncio.run(decide_on())
"""


def logged(path):
    """The number of rows; 0 while there is no file with tables."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT count(*) FROM decisions").fetchone()[0]


def has_rows(path):
    try:
        return logged(path) > 0
    except sqlite3.OperationalError:
        return False


def test_a_killed_process_keeps_every_row_that_was_committed(tmp_path):
    """The file is whole, its rows have no gap, and the next process opens it at once."""
    path = tmp_path / "decisions.sqlite3"
    command = [sys.executable, "-c", DECIDING, str(path)]
    counts = []
    for _ in range(2):
        with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
            until(lambda: has_rows(path))
            seen = logged(path)
            process.send_signal(signal.SIGKILL)
        with closing(sqlite3.connect(path)) as connection:
            [[whole]] = connection.execute("PRAGMA integrity_check").fetchall()
            numbers = [
                int(id.removeprefix("d-"))
                for (id,) in connection.execute("SELECT decision_id FROM decisions")
            ]
            connection.execute("DELETE FROM decisions")
            connection.commit()
        counts.append((seen, whole, sorted(numbers)))

    for seen, whole, numbers in counts:
        assert "ok" == whole
        assert len(numbers) >= seen
        assert [*range(len(numbers))] == numbers


def test_a_second_service_on_the_same_file_ends_at_its_start_and_names_it(tmp_path):
    """Before it loads models; a supervisor may try again, as the first one may be about to end."""
    path = tmp_path / "decisions.sqlite3"
    with fake_service(tmp_path, SCOREGATE_DECISIONS__LOG=f"sqlite:///{path}") as running:
        status, [line] = ended(
            *COMMAND,
            SCOREGATE_SERVER__PORT="0",
            SCOREGATE_CACHE__QUESTIONS=f"sqlite:///{tmp_path}/other.sqlite3",
            SCOREGATE_DECISIONS__LOG=f"sqlite:///{path}",
        )

        assert LATER == status
        where = f"decisions.log: {path} is in use by the process {running.process.pid}"
        assert line.startswith(f"scoregate-server: {where}")


def test_sigterm_does_not_wait_for_audits(tmp_path):
    """Their model hangs; the process ends with status 0 after the grace, and their row stays selected."""
    path = tmp_path / "decisions.sqlite3"
    settings = {
        "SCOREGATE_SERVER__GRACE_S": "1",
        "SCOREGATE_DECISIONS__LOG": f"sqlite:///{path}",
        "SCOREGATE_DECISIONS__AUDIT": "1",
        "SCOREGATE_POLICIES__SHOW__ACCEPT": "vqascore >= 0.5",
    }
    item = {"image": b64(png("red")), "prompt": "held"}
    body = {"policy": "show", "items": [item], "timeout_ms": 1000}
    with faulty(tmp_path, **settings) as double:
        answer = double.client.post("/decide", json=body)
        until(double.is_held)
        double.process.send_signal(signal.SIGTERM)
        status = double.process.wait(50)

    assert "deadline_exceeded" == answer.json()["decisions"][0]["errors"]["vqascore"]["code"]
    assert 0 == status
    with closing(sqlite3.connect(path)) as connection:
        assert [("selected", "{}")] == connection.execute("SELECT audit, scores FROM decisions").fetchall()
