"""What `make fuzz` does, with few requests."""

from tests.process.fuzz.__main__ import fuzz


def test_schemathesis_finds_nothing(locked_service):
    """What the schema allows is answered, what it forbids is refused, and every answer is as it says."""
    assert 0 == fuzz(5, locked_service)
