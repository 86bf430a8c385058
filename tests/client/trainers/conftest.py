"""A real service around fakes, and rewards whose transport fails as it is told."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scoregate.trainers import reward as module
from scoregate.trainers.reward import Reward
from tests.client.trainers.scripted import Scripted
from tests.docs.packages import FAKES, served


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one process for all tests."""
    with served(tmp_path_factory.mktemp("trainers"), FAKES) as client:
        yield str(client.base_url)


@pytest.fixture
def here(service: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same, named in the environment as a trainer's launch script does."""
    monkeypatch.setenv("SCOREGATE_BASE_URL", service)
    return service


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Reward, Scripted]]]:
    """A reward and the service behind it, which does what it is told; nobody waits."""
    monkeypatch.setattr(module, "pause_s", lambda errors, attempt: 0.0)
    monkeypatch.setattr("scoregate.connection.wait_s", lambda error, attempt: 0.0)
    made = []

    def make(*script: Any, **settings: Any) -> tuple[Reward, Scripted]:
        double = Scripted(script)
        made.append(Reward(transport=double.transport, **settings))
        return made[-1], double

    yield make
    for each in made:
        each.close()
