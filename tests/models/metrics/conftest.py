"""The real app around models."""

from tests.support.app import serve

__all__ = ["serve"]
