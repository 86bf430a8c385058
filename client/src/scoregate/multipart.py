"""A multipart body of one JSON part and files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scoregate.http import httpx


def form(request: Mapping[str, Any], files: Mapping[str, bytes]) -> tuple[str, bytes]:
    """
    Return the content type and the body: *request* as JSON in the part `request`, then the files.

    The body is joined here, since httpx2 would write each part to the socket by itself: for 32 small files
    this takes 6 ms of the event loop instead of one.

    Raises:
        ValueError: a number of the request is not finite.
        TypeError: a value of the request is not JSON.
    """
    content = json.dumps(request, allow_nan=False).encode()
    parts: dict[str, Any] = {"request": (None, content, "application/json")}
    parts |= {name: (name, data) for name, data in files.items()}
    built = httpx.Request("POST", "", files=parts)
    return built.headers["Content-Type"], built.read()
