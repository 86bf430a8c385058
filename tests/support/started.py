"""Fixtures: the processes that are started once for all tests that leave them as they were."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from demo.process import SERVICE, free_port, running, url, wait_until_ready
from tests.support import fake_service as fake
from tests.support.double import Double, faulty
from tests.support.redis_server import RedisServer, redis_server

HASTY = {"SCOREGATE_SERVER__BODY_TIMEOUT_S": "1", "SCOREGATE_SERVER__KEEP_ALIVE_S": "1"}


class Demo(NamedTuple):
    """The address of a service around the demo models, and its home folder, of its own."""

    url: str
    home: Path


@pytest.fixture(scope="session")
def fake_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[fake.FakeService]:
    """The service around fake models, open to everyone."""
    with fake.fake_service(tmp_path_factory.mktemp("fake")) as running:
        yield running


@pytest.fixture(scope="session")
def locked_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[fake.FakeService]:
    """The same with a file of API keys."""
    with fake.locked_service(tmp_path_factory.mktemp("locked")) as running:
        yield running


@pytest.fixture(scope="session")
def demo_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The service around the demo models, each of whose scores is computed anew."""
    folder, port = tmp_path_factory.mktemp("demo"), free_port(0)
    home = folder / "home"
    settings = {"HOME": str(home), "SCOREGATE_CACHE__SCORES": "off"}
    with running(port, SERVICE, folder / "stderr", **settings) as process:
        wait_until_ready(process, port)
        yield Demo(url(port), home)


@pytest.fixture(scope="session")
def double(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Double]:
    """The faulty service, which waits a second for whatever is missing."""
    with faulty(tmp_path_factory.mktemp("faulty"), **HASTY) as running:
        yield running


@pytest.fixture(scope="session")
def redis_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """The Redis of all tests."""
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def redis(redis_process: RedisServer) -> RedisServer:
    """The Redis of all tests, emptied; no test may stop it."""
    redis_process.do("FLUSHALL")
    redis_process.do("CONFIG", "RESETSTAT")
    return redis_process
