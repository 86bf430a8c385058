"""The command that imports and exports question sets."""

import json

import pytest

from tests.support.command import never, server

__all__ = ["server"]


@pytest.fixture
def questions(server, tmp_path):
    """`scoregate-server questions …` on a store of its own: what it printed last, its stderr, its status."""

    def run(*arguments, store="store", place=None):
        place = place or f"sqlite:///{tmp_path}/{store}.sqlite3"
        status, out, lines = server("questions", *arguments, load=never, SCOREGATE_CACHE__QUESTIONS=place)
        return (
            json.loads(out.splitlines()[-1]) if out else None,
            "".join(f"{line}\n" for line in lines),
            status,
        )

    return run
