"""The command as a user has it, and pictures for it."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx
import pytest

import scoregate as module
from scoregate.cli.main import main
from tests.client.cli.served import ROWS
from tests.conftest import png

COMMAND = Path(sys.executable).with_name("scoregate")
CLIENT = module.Client
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


Command = Callable[..., "tuple[int, str, str]"]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in a folder with a picture and a data set; its status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOREGATE_BASE_URL", "http://test")
    (tmp_path / "p.png").write_bytes(png())
    rows = [{"image": "p.png", "prompt": f"prompt {n}", "good": n % 2} for n in range(ROWS)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    def command(service: Callable[[httpx.Request], httpx.Response], *arguments: str) -> tuple[int, str, str]:
        transport = httpx.MockTransport(service)
        monkeypatch.setattr(module, "Client", partial(CLIENT, transport=transport))
        try:
            status = main(arguments)
        except SystemExit as ended:  # the parser's
            status = int(ended.code or 0)
        said = capsys.readouterr()
        return status, said.out, said.err

    return command
