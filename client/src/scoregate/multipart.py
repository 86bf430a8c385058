"""A form of one JSON part and files, as bytes."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any


def form(request: Mapping[str, Any], files: Mapping[str, bytes]) -> tuple[str, bytes]:
    """
    The content type and the bytes of a form: *request* as JSON in the part `request`, then the files.

    Raises:
        ValueError: a number of the request is not finite.
        TypeError: a value of it is not JSON.
    """
    boundary = secrets.token_hex(16)  # 128 random bits stand in no file
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="request"\r\n'
        "Content-Type: application/json\r\n\r\n".encode(),
        json.dumps(request, allow_nan=False).encode(),
    ]
    for name, data in files.items():
        head = f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'
        parts += [head.encode(), data]
    parts.append(f"\r\n--{boundary}--\r\n".encode())
    return f"multipart/form-data; boundary={boundary}", b"".join(parts)
