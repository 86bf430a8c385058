"""docs/guides/hardware.md: one service per GPU, started and ended together."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.packages import files_of

SERVER = """#!/bin/sh
echo "$$ $CUDA_VISIBLE_DEVICES $SCOREGATE_SERVER__PORT $*" > "$STARTED"
exec sleep 60
"""


@pytest.fixture
def script(tmp_path):
    """The page's script with a server that tells what it was started with, and then does nothing."""
    (tmp_path / "start.sh").write_text(files_of("guides/hardware.md")["start.sh"], "utf-8")
    (tmp_path / "scoregate-server").write_text(SERVER, "utf-8")
    (tmp_path / "scoregate-server").chmod(0o755)
    os.mkfifo(tmp_path / "started")
    settings = f"PATH={tmp_path}:{os.environ['PATH']}", f"STARTED={tmp_path}/started", "GPUS=0 3"
    command = ["env", *settings, "BASE_PORT=9100", "bash", "start.sh", "profile.toml"]
    script = subprocess.Popen(command, cwd=tmp_path, start_new_session=True)
    yield script
    if script.poll() is None:
        os.killpg(script.pid, signal.SIGKILL)
        script.wait()


def started(folder: Path) -> dict[int, str]:
    """What both servers were started with, by process id."""
    # Open for writing, too: else a server that writes after the other one's end of file finds no reader.
    with os.fdopen(os.open(folder / "started", os.O_RDWR)) as pipe:
        lines = [pipe.readline().rstrip("\n") for _ in range(2)]
    return {int(line.split()[0]): line.partition(" ")[2] for line in lines}


def test_each_gpu_gets_a_service_and_a_port_of_its_own(script, tmp_path):
    """Ports count up from the base, by GPU."""
    servers = started(tmp_path)

    assert {"0 9100 --config profile.toml", "3 9103 --config profile.toml"} == set(servers.values())


@pytest.mark.parametrize("ended", ["server", "script"])
def test_all_end_when_one_does(script, tmp_path, ended):
    """With status 1 for a server that ended, and as one process where the script is told to end."""
    first, second = started(tmp_path)
    os.kill(first if ended == "server" else script.pid, signal.SIGTERM)

    assert (1 if ended == "server" else 143) == script.wait(30)
    for process in (first, second):
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
