"""The Makefile shows what it does while an installer is silent."""

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT

# Either may install: of pip alone uv is not there, and make goes on with pip.
PIP = """#!/bin/sh
case "$*" in *uv==*) [ {tool} = uv ] && cp "$0" "${{0%pip}}uv"; exit 0 ;; *lock) ;; *) exit 0 ;; esac
echo "  Downloading torch-2.15.0-cp311-none-linux_x86_64.whl (900.0 MB)"
read -r _ < "$GATE" && exit {status}
"""
PYTHON = """#!/bin/sh
mkdir -p "$3/bin" && cp "$PIP" "$3/bin/pip"
"""


ENVIRONMENTS = [(".venv/server", ".venv"), ("vllm", ".venv-vllm"), (".venv-clients/ready", ".venv-clients")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The Makefile in a folder of its own."""
    for file in (ROOT / "Makefile", ROOT / "pyproject.toml", *ROOT.glob("requirements*.lock")):
        shutil.copy(file, tmp_path)
    (tmp_path / "client").mkdir()
    shutil.copy(ROOT / "client" / "pyproject.toml", tmp_path / "client")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ((), ""),
        (("PORT=8300",), "--port 8300"),
        (("SCOREGATE_SERVER__PORT=8300",), "--port 8300"),
        (("SCOREGATE_SERVER__PORT=8300", "PORT=8301", "CONFIG=a b"), '--config "a b" --port 8301'),
    ],
)
@pytest.mark.parametrize("command", ["env {} make -n serve", "make -n serve {}"])
def test_make_serve_takes_a_port(project, words, arguments, command):
    """As a variable of make or of the environment, and as the service's own setting."""
    line = command.format(shlex.join(words))
    done = subprocess.run(
        ["env", "-u", "MAKEFLAGS", "-u", "PORT", "sh", "-c", line],
        cwd=project,
        capture_output=True,
        text=True,
    )

    [serve] = [line for line in done.stdout.splitlines() if "demo.serve" in line]
    assert arguments == serve.partition("demo.serve")[2].strip()


@pytest.mark.parametrize(("target", "folder"), ENVIRONMENTS)
@pytest.mark.parametrize(("tool", "status"), [("uv", 0), ("pip", 0), ("pip", 1)])
def test_a_long_installation_shows_that_it_goes_on(project, target, folder, tool, status):
    """First a line with its size, then downloads, then ticks until the end; the status counts."""
    for name, text in (("pip", PIP.format(status=status, tool=tool)), ("python", PYTHON)):
        (project / name).write_text(text, "utf-8")
        (project / name).chmod(0o755)
    gate = project / "gate"
    os.mkfifo(gate)
    # `make test` runs these tests, and tells the makes below it so.
    variables = "-u", "MAKELEVEL", "-u", "MAKEFLAGS", "-u", "MFLAGS", f"GATE={gate}", f"PIP={project}/pip"
    make = subprocess.Popen(
        ["env", *variables, "make", target, f"PYTHON={project}/python", "TICK_S=0.1"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert make.stdout is not None
        lines = iter(make.stdout.readline, "")
        assert "GB" in next(lines)
        assert any("Downloading torch" in line for line in lines)
        assert f"{folder}: " in next(lines)
        with gate.open("w") as opened:
            opened.write("\n")
        rest = list(lines)  # to the end: no ticker holds the pipe
    finally:
        if make.poll() is None:
            os.killpg(make.pid, signal.SIGKILL)
        make.wait()
        make.stdout.close()

    assert bool(status) == bool(make.returncode)
    assert not status or any("Error" in line for line in rest)
