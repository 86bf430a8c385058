"""The real app beside processes, and a Redis that a test may stop."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.app import serve
from tests.support.redis_server import RedisServer, redis_server

__all__ = ["serve"]


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis of the test's own, to be killed or stopped."""
    with redis_server(tmp_path) as server:
        yield server
