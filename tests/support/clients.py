"""Real clients, in the environment that `make clients` builds."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT

FOLDER = ROOT / ".venv-clients" / "bin"
LIMIT_S = 120


def program(name: str = "python") -> str:
    """The path of a program of the environment."""
    found = FOLDER / name
    assert found.exists(), "the tests run real clients: run `make clients` first"
    return str(found)


def run(*command: str | Path, given: Any = None, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command with programs of the environment in its path; *given* is its stdin, as JSON."""
    path = f"PATH={FOLDER}:/usr/bin:/bin"
    return subprocess.run(
        ["env", path, *command],
        input=json.dumps(given),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def answers(script: Path, given: Any) -> Any:
    """What a script of the environment made of *given*; it must end well."""
    ran = run(program(), script, given=given)
    assert 0 == ran.returncode, ran.stderr
    return json.loads(ran.stdout)
