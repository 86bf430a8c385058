"""docs/guides/troubleshooting.md: symptoms as they are seen."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from models.core.contract import CheckpointError
from service.core.settings import SettingsError
from service.process.check import check
from service.web.openapi import tree
from service.wiring.load import load_settings
from tests.support.packages import files_of
from tests.support.pages import named_rows, page, rows, section

PAGE = "guides/troubleshooting.md"
STARTS = [
    cells for cells in named_rows(section(PAGE, "## The process does not start")) if "--check" in cells[0]
]


@pytest.mark.parametrize(("command", "line"), STARTS, ids=[cells[1] for cells in STARTS])
def test_a_start_that_fails_says_what_the_page_shows(command, line):
    """Each command of the table, with its settings and its profile."""
    words = shlex.split(command.strip("`"))
    environ = dict(word.split("=", 1) for word in words if "=" in word)
    profile = Path(words[words.index("--config") + 1]) if "--config" in words else None

    with pytest.raises((SettingsError, CheckpointError), match=re.escape(line.strip("`"))):
        check(load_settings(profile, environ))


def test_the_codes_of_the_page_are_errors_of_the_service():
    """The first column of both tables of failed requests."""
    for heading in ("## Calls return 429 or 503", "## Requests fail otherwise"):
        cells = [cells[0] for cells in rows(section(PAGE, heading))]
        named = set(re.findall(r"`([a-z_0-9]+)`", " ".join(cells)))

        assert named
        assert named <= {error.code for error in tree()}


def test_a_temporary_failure_of_each_code_has_a_row():
    """Of a whole request with 429 or 503; which says what the caller does, and what the operator."""
    table = [*rows(section(PAGE, "## Calls return 429 or 503"))][1:]
    named = {name for cells in table for name in re.findall(r"`(\w+)`", cells[0])}

    assert named == {error.code for error in tree() if error.status in (429, 503) and error.where != "entry"}
    assert all(cells[1] and cells[2] for cells in table)


@pytest.mark.parametrize(
    "symptom", ["out of memory", ".heic", "EXIF", "401", "reward of a group is constant"]
)
def test_what_users_meet_most_often_has_a_row(symptom):
    """A search of the page for it finds a row of a table, which says what to do."""
    found = [cells for cells in rows(page(PAGE)) if any(symptom in cell for cell in cells[:2])]

    assert found
    assert all(cells[2] for cells in found)


def test_the_four_questions_are_answered(tmp_path, client):
    """The script of the page, as it is pasted."""
    (tmp_path / "status.sh").write_text(files_of(PAGE)["status.sh"], "utf-8")
    command = ["env", "NO_PROXY=*", "bash", str(tmp_path / "status.sh"), str(client.base_url).rstrip("/")]
    alive, ready, health, *series = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()

    assert '{"status":"ok"}' == alive
    assert ready.startswith('{"ready":true')
    assert '"vqascore"' in health
    assert any(line.startswith('scoregate_queue_depth{lane="bulk"') for line in series)
    assert any(line.startswith("scoregate_model_ready") for line in series)
