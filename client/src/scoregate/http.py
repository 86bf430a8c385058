"""The HTTP library, imported here only: a fork with the same API is a change of one line."""

import httpx

__all__ = ["httpx"]
