"""The command as a user has it, and pictures for it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import png

COMMAND = Path(sys.executable).with_name("scoregate")
COLOURS = ("red", "green", "blue", "white")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The installed command, in a folder of the test's own."""

    def run(*arguments: str, env: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
        command = ["env", *env, str(COMMAND), *arguments]
        return subprocess.run(
            command,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            encoding="utf-8",
        )

    return run


@pytest.fixture
def scoregate(run: Run, service: str) -> Run:
    """The same, told the service by the environment."""
    return lambda *arguments, env=(): run(*arguments, env=(f"SCOREGATE_BASE_URL={service}", *env))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Four pictures with their captions, and one that is broken."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for colour in (*COLOURS, "broken"):
        data = png("red")[:40] if colour == "broken" else png(colour)
        (folder / f"{colour}.png").write_bytes(data)
        (folder / f"{colour}.txt").write_text(f"a {colour} square\n", "utf-8")
    return folder
