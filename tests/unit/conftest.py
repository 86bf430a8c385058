"""What the tests of this tier hold to: they start no process and load no framework."""

from collections.abc import Iterator

import pytest

from tests.support.nothing import collected_alone, loaded, nothing_started

HEAVY = ("torch", "ray", "service.web.app")
EARLIER = loaded(HEAVY)  # by another run of pytest in this process, as mutmut starts them


@pytest.fixture(scope="session", autouse=True)
def _collecting_loads_little(request: pytest.FixtureRequest) -> None:
    """Fail where importing the tests of this tier alone loads a heavy module."""
    assert not (collected_alone(request.session, "unit") and loaded(HEAVY) - EARLIER)


@pytest.fixture(autouse=True)
def _pure() -> Iterator[None]:
    """Fail a test that starts a process, or is the first to load a heavy module."""
    with nothing_started(HEAVY):
        yield
