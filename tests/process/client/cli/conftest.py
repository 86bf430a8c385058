"""The command on a real service: called as a function, and as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.client.cli.conftest import Run, command, pictures, run
from tests.unit.client.conftest import waited

__all__ = ["command", "pictures", "run", "waited"]

COMMAND = Path(sys.executable).with_name("scoregate")


@pytest.fixture
def scoregate(run: Run, service: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command's function; the environment names the service."""
    monkeypatch.setenv("SCOREGATE_BASE_URL", service)
    return run


@pytest.fixture
def installed(tmp_path: Path, service: str) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """The installed command as a process in the test's folder, with more variables in its environment."""

    def installed(*arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [COMMAND, *arguments],
            cwd=tmp_path,
            env={**os.environ, "SCOREGATE_BASE_URL": service, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            encoding="utf-8",
        )

    return installed
