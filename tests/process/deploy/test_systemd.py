"""deploy/systemd: units that systemd accepts."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.app.deploy.test_systemd import NAMES
from tests.support.units import unit


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze here")
@pytest.mark.parametrize("name", NAMES)
def test_systemd_accepts_the_unit(name, tmp_path):
    """With a program that is there in place of its own; a misspelt directive is seen."""
    copy = tmp_path / f"{name}.service"
    text = unit(name).path.read_text("utf-8").replace(unit(name).command[0], "/bin/true")
    copy.write_text(text.replace("/usr/bin/curl", "/bin/true"), "utf-8")

    assert "" == complaints(copy)
    copy.write_text(copy.read_text("utf-8").replace("RestartSec", "RestartSecs"), "utf-8")
    assert "RestartSecs" in complaints(copy)


def complaints(path: Path) -> str:
    """What systemd has to say of a unit; of units of this machine it may say more."""
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True
    )
    return "".join(line for line in done.stderr.splitlines(True) if path.name in line)
