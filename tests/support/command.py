"""`scoregate-server` as a function."""

from collections.abc import Callable
from typing import Any

import pytest

from models.core.machine import THIS_MACHINE, Machine
from service.process.command import Load, status_of
from service.serving.loading import load_models

Server = Callable[..., "tuple[int, str, list[str]]"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Server:
    """The command: its status, its stdout and the lines of its stderr that are no log."""

    def run(
        *arguments: Any, load: Load = load_models, machine: Machine = THIS_MACHINE, **environment: str
    ) -> tuple[int, str, list[str]]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        try:
            status = status_of([*map(str, arguments)], load, machine)
        except SystemExit as ended:
            status = int(ended.code or 0)
        said = capsys.readouterr()
        return status, said.out, said.err.splitlines()

    return run


def never(settings: object) -> Any:
    """Fail in place of loading models."""
    raise AssertionError("a model is loaded")
