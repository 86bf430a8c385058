"""The shared service around fake models, and a client of it."""

from collections.abc import Iterator

import pytest

from scoregate import Client
from tests.support.fake_service import FakeService
from tests.unit.client.conftest import answered, written

__all__ = ["answered", "written"]


@pytest.fixture(scope="session")
def service(fake_service: FakeService) -> str:
    """Its address."""
    return fake_service.url


@pytest.fixture
def client(service: str) -> Iterator[Client]:
    """A client of that service."""
    with Client(service) as client:
        yield client
