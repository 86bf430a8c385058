"""The fuzzers of the core, with a few seeds; `make fuzz-serving` runs them with many."""

import logging

import pytest

from tests.app.fuzz_serving import lifecycle, pool, replicas

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(autouse=True)
def quiet():
    """The faults are on purpose, and each logs a traceback."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", range(6))
async def test_random_traffic_on_a_pool_finds_nothing(seed):
    """Each call has its own answer, whatever its neighbours and devices do, and nothing is left."""
    assert [] == await pool.fuzz(seed)


@pytest.mark.parametrize("seed", range(2))
async def test_random_changes_of_a_model_under_traffic_find_nothing(seed):
    """Each score is that of the model that its response names, and nothing is left."""
    assert [] == await lifecycle.fuzz(seed)


@pytest.mark.parametrize("seed", range(6))
async def test_random_replicas_find_nothing(seed):
    """No request has scores of two models, and each has an answer."""
    assert [] == await replicas.fuzz(seed)
