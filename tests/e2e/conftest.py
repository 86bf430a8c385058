"""One faulty double for all tests that leave it alive."""

from collections.abc import Iterator

import pytest

from tests.e2e.double import Double, faulty


@pytest.fixture(scope="session")
def double(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Double]:
    with faulty(tmp_path_factory.mktemp("faulty")) as running:
        yield running
