"""Each reward model, loaded once from a small random checkpoint in the published layout."""

from functools import cache

import pytest

from tests.models.vl_reward.kinds import KINDS, ON_THE_CPU
from tests.support.vl_checkpoints import outputs


@pytest.fixture(scope="package")
def directories(tmp_path_factory):
    """Return the checkpoint of a kind by its name, to be read only."""
    return cache(lambda name: KINDS[name].make(tmp_path_factory.mktemp(name) / name))


@pytest.fixture(scope="package")
def models(directories):
    """Return the loaded model of a kind by its name, which no test changes."""
    return cache(lambda name: KINDS[name].model(directories(name), **ON_THE_CPU))


@pytest.fixture(scope="package")
def answers(models):
    """Return the outputs of a kind for the recorded calls, all in one batch."""
    return cache(lambda name: outputs(models(name), *KINDS[name].calls))
