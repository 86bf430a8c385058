"""A small corpus."""

from tests.unit.loadtest.conftest import folder

__all__ = ["folder"]
