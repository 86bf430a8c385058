"""`scoregate-server doctor` and a Redis."""

import pytest

from demo.process import HOST, free_port
from service.core.settings.tree import Settings
from service.process.doctor import LATER, WRONG, check_redis

pytestmark = pytest.mark.anyio


async def finding(url):
    """The finding about the Redis of the scores' cache."""
    [found] = await check_redis(Settings.model_validate({"models": {}, "cache": {"scores": url}}))
    return found


async def test_a_redis_that_answers_has_a_line(redis):
    """With its place, and nothing to do."""
    assert f"✓ Redis of cache.scores: {redis.place} answers" == str(await finding(redis.url))


async def test_a_wrong_password_has_to_be_corrected(redis):
    """And is not printed."""
    found = await finding(f"redis://:secret@{redis.place}/0")

    assert WRONG == found.status
    assert "AuthenticationError" in str(found)
    assert "secret" not in str(found)


async def test_a_redis_that_is_away_may_come():
    """With the cache's setting in the remedy."""
    found = await finding(f"redis://{HOST}:{free_port(0)}/0")

    assert LATER == found.status
    assert str(found).endswith("start it, or correct cache.scores")
