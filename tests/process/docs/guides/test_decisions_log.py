"""docs/operations/decisions-log.md: what was decided about a picture is found, and decided again."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from demo.samples import FOLDER
from tests.support.decision_logs import write
from tests.support.decision_records import record
from tests.support.packages import files_of
from tests.support.pages import ROOT, fences

PAGE = "operations/decisions-log.md"
PROVE, AGAIN = (text for _, text in fences(PAGE, "sh"))
SAMPLE = FOLDER / "binding.png"
DIGEST = hashlib.sha256(SAMPLE.read_bytes()).hexdigest()
COMMANDS = f"""set -eu
scoregate() {{ {sys.executable} -m scoregate.cli "$@"; }}
python() {{ {sys.executable} "$@"; }}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as the page's reader has it: the samples, the page's files, and a log of two decisions."""
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "samples").symlink_to(FOLDER)
    for name, text in files_of(PAGE).items():
        (tmp_path / name).write_text(text, "utf-8")
    right = record(
        "right", image=DIGEST, prompt="a green circle and a red square", scores={"vqascore": 0.9999}
    )
    wrong = record("wrong", image=DIGEST, prompt="three stars", decision="reject", scores={"vqascore": 0.01})
    changed = record("changed", image=DIGEST, prompt="a red circle", decision="reject", scores={})
    write(tmp_path / "decisions.sqlite3", right, wrong, changed)
    return tmp_path


def run(folder: Path, script: str) -> str:
    """Run lines of the page in *folder*, and return what they print."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "client" / "src")])
    done = subprocess.run(
        ["bash", "-c", COMMANDS + script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    return done.stdout


def test_the_rows_of_a_picture_are_found_by_its_digest(folder):
    """The last two commands of the first block; the others start a service and decide."""
    exported = PROVE.split("decide demo")[1].partition("\n")[2]
    script = exported.replace(".venv/bin/", "").replace("/var/tmp/", "")
    lines = run(folder, script).splitlines()

    assert ["right", "wrong", "changed"] == [line.partition(",")[0] for line in lines]
    assert all(DIGEST in line for line in lines)


def test_the_log_is_decided_again_with_a_new_model(folder):
    """The pictures are scored by the new model, and the script prints the decisions that change."""
    lines = run(folder, AGAIN).splitlines()
    *changed, summary = lines

    assert summary == f"{len(changed)} of 3 decisions change"
    assert [line for line in changed if line.startswith("changed reject")]
    assert not [line for line in changed if line.startswith(("right", "wrong"))]
    assert all("-> accept clipscore 0." in line for line in changed)
