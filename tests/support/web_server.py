"""The server of pytest-httpserver, in threads: a request that it holds does not hold others."""

import threading
from collections.abc import Iterator

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from service.images.fetcher import PublicNetwork

HELD_S = 10  # at most, so that a test that fails ends


def this_machine() -> PublicNetwork:
    """A network whose hosts are all this machine."""

    async def here(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    return PublicNetwork(here, allowed=lambda address: True)


@pytest.fixture(scope="session")
def make_httpserver() -> Iterator[HTTPServer]:
    with HTTPServer(host="127.0.0.1", threaded=True) as server:
        yield server


@pytest.fixture
def held(httpserver: HTTPServer) -> Iterator[str]:
    """A path whose requests get no byte before the test is over."""
    over = threading.Event()

    def body() -> Iterator[bytes]:
        over.wait(HELD_S)
        yield b""

    httpserver.expect_request("/held").respond_with_handler(lambda request: Response(body()))
    yield "/held"
    over.set()
