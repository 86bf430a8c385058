"""Rewards whose transport fails as it is told."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scoregate.trainers.reward import Reward
from tests.unit.client.trainers.scripted import Scripted


def settle(reward: Reward) -> None:
    """Wait for the work of the reward's watch."""
    for each in list(reward._watcher._here()._workers.values()):
        each.result(60)


@pytest.fixture
def scripted() -> Iterator[Callable[..., tuple[Reward, Scripted]]]:
    """A reward and the service behind it, which does what it is told; nobody waits."""
    made = []

    def make(*script: Any, **settings: Any) -> tuple[Reward, Scripted]:
        double = Scripted(script)
        made.append(Reward(transport=double.transport, **settings))
        return made[-1], double

    yield make
    for each in made:
        each.close()
