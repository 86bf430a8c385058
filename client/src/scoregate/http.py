"""The HTTP library, imported here only, so that a move to another is a change of one line (ADR 0026)."""

import httpx2 as httpx

__all__ = ["httpx"]
