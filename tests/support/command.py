"""`scoregate-server` as a function."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from service.process import command

Server = Callable[..., "tuple[int, str, list[str]]"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Server:
    """The command: its status, its stdout and the lines of its stderr that are no log."""
    monkeypatch.setattr(command, "configure_logging", lambda: None)  # the tests' own handlers stay

    def run(*arguments: Any, **environment: str) -> tuple[int, str, list[str]]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["scoregate-server", *map(str, arguments)])
        status = 0
        try:
            command.main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        said = capsys.readouterr()
        return status, said.out, said.err.splitlines()

    return run
