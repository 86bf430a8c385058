"""What the tests of this tier hold to: they start no process and load no framework."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HEAVY = ("torch", "ray", "service.http.app")


def loaded() -> set[str]:
    """Return which of the heavy modules are loaded."""
    return {name for name in HEAVY if sys.modules.get(name) is not None}


@pytest.fixture(scope="session", autouse=True)
def _collecting_loads_little(request: pytest.FixtureRequest) -> None:
    """Fail where importing the tests of this tier alone loads a heavy module."""
    alone = all(item.path.is_relative_to(Path(__file__).parent) for item in request.session.items)
    assert not (alone and loaded())


@pytest.fixture(autouse=True)
def _pure() -> Iterator[None]:
    """Fail a test that starts a process, or is the first to load a heavy module."""

    def refuse(*arguments: Any, **more: Any) -> None:
        raise AssertionError(f"a test of tests/unit starts a process: {arguments}")

    before = loaded()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fork", refuse)
        patch.setattr(subprocess, "Popen", refuse)
        yield
    assert loaded() == before
