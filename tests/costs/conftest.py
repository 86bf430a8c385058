"""The real app around fake models, and a service for large requests."""

from tests.support.app import serve
from tests.support.large_requests import opened

__all__ = ["opened", "serve"]
