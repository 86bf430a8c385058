"""Hooks and fixtures for the tests of all tiers."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from service.questions.stores import sqlite
from tests.support.fakes import FakeModel, new_fakes
from tests.support.leaps import LeapingLoop

# Beside other work an example may take any time.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=10, **UNTIMED)
settings.register_profile("gate", max_examples=40, **UNTIMED)
settings.register_profile("thorough", max_examples=600, **UNTIMED)
settings.load_profile("gate")

pytest_plugins = [
    "tests.support.garbage",
    "tests.support.schedule",
    "tests.support.progress",
    "tests.support.background",
    "tests.support.started",
    "tests.support.hub",
]


def pytest_configure() -> None:
    """Restore Ctrl-C for the processes that tests start: a shell ignores it in background jobs."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": LeapingLoop}


@pytest.fixture(scope="session", autouse=True)
def _unsynced() -> Iterator[None]:
    """Have question stores of this process not wait for the disk: no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "SYNCHRONOUS", "OFF")
        yield


@pytest.fixture
def parts() -> dict[str, Any]:
    """Parts of the service of `serve`, in place of a process's own; modules override it."""
    return {}


@pytest.fixture
def fakes() -> dict[str, FakeModel]:
    return new_fakes()
