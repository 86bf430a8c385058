"""What `make fuzz` does, with few requests."""

import pytest

from tests.fuzz.__main__ import fuzz


@pytest.mark.integration
def test_schemathesis_finds_nothing(tmp_path):
    """What the schema allows is answered, what it forbids is refused, and every answer is as it says."""
    assert 0 == fuzz(20, tmp_path)
