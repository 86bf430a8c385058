"""The service as a trainer finds it."""

import pytest

from tests.unit.client.trainers.conftest import scripted

__all__ = ["scripted"]


@pytest.fixture
def here(service: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the service, named in the environment as a trainer's launch script does."""
    monkeypatch.setenv("SCOREGATE_BASE_URL", service)
    return service
