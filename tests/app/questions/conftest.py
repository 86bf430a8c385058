"""The command that imports and exports question sets."""

import json
import sys

import pytest

from service.process import command


@pytest.fixture
def questions(monkeypatch, capsys, tmp_path):
    """`scoregate-server questions …` on a store of its own: what it printed last, its stderr, its status."""
    monkeypatch.setattr(command, "configure_logging", lambda: None)
    monkeypatch.setattr(command, "load_models", None)  # nothing may be loaded

    def run(*arguments, store="store", place=None):
        place = place or f"sqlite:///{tmp_path}/{store}.sqlite3"
        monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", place)
        monkeypatch.setattr(sys, "argv", ["scoregate-server", "questions", *map(str, arguments)])
        status = 0
        try:
            command.main()
        except SystemExit as ended:
            status = ended.code
        said = capsys.readouterr()
        return json.loads(said.out.splitlines()[-1]) if said.out else None, said.err, status

    return run
