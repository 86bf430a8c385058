"""What the tiers hold to that start nothing."""

import os
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.paths import ROOT

LISTS_FONTS = "fc-list"  # which matplotlib starts, once on a machine


def loaded(heavy: Collection[str]) -> set[str]:
    """Return which of those modules are loaded."""
    return {name for name in heavy if sys.modules.get(name) is not None}


def collected_alone(session: pytest.Session, *tiers: str) -> bool:
    """Return True if all tests of the session are of those *tiers*."""
    folders = [ROOT / "tests" / tier for tier in tiers]
    return all(any(item.path.is_relative_to(folder) for folder in folders) for item in session.items)


@contextmanager
def nothing_started(heavy: Collection[str]) -> Iterator[None]:
    """Fail where a process is started, or one of the *heavy* modules is loaded first."""
    before, start = loaded(heavy), subprocess.Popen.__init__

    def refuse(process: object = None, command: Any = ("a fork",), *more: Any, **options: Any) -> None:
        assert command[0] == LISTS_FONTS, f"a process is started: {command}"
        start(process, command, *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fork", refuse)
        patch.setattr(subprocess.Popen, "__init__", refuse)
        yield
    assert before == loaded(heavy)
