"""Responses of the service, read and decompressed within limits, and the errors that they are."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from scoregate.errors import ScoregateError, ServiceConnectionError, error_of
from scoregate.http import httpx

MAX_BYTES = 32 * 2**20  # bytes of an answer, decompressed; one about 128 items with all details has a few MB
ENCODING = "gzip"  # the only one accepted, since it can be decompressed incrementally
GZIP = 16 + zlib.MAX_WBITS
OF_A_PROXY = (429, 502, 503, 504)  # a response without a code of the service did not reach it


@dataclass(frozen=True)
class Reply:
    """A complete response, decompressed."""

    url: str
    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """Parse the JSON.  Raises `ScoregateError` if it is not valid, or nested too deeply."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError) as exc:
            raise ScoregateError(
                f"{self.url} answered {self.status} without JSON", status=self.status
            ) from exc


async def reply_of(response: httpx.Response, url: str) -> Reply:
    """
    Read the rest of a response from *url*.

    Raises:
        ScoregateError: it is longer than `MAX_BYTES`, or has another content encoding than `ENCODING`.
        httpx2.RequestError: the connection broke.
    """
    content = bytearray()
    async for piece in pieces_of(response, url):
        content += piece
    return Reply(url, response.status_code, response.headers, bytes(content))


async def pieces_of(response: httpx.Response, url: str) -> AsyncIterator[bytes]:
    """Yield the rest of a response in pieces as they come, decompressed.  Raises as `reply_of`."""
    size, pieces = 0, unpacked(response)
    try:
        async for piece in pieces:
            size += len(piece)
            check_size(size)
            yield piece
    except (ValueError, zlib.error) as exc:
        status = response.status_code
        raise ScoregateError(
            f"cannot read what {url} answered: {exc}",
            status=status,
            request_id=response.headers.get("x-request-id", ""),
        ) from exc


async def unpacked(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield pieces of at most one byte more than `MAX_BYTES`.  Raises `ValueError` and `zlib.error`."""
    if response.is_stream_consumed:  # a transport for tests has read and decompressed it
        yield response.content
        return
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding not in (ENCODING, "identity"):
        raise ValueError(f"the content encoding {encoding[:40]!r} is not accepted")
    unpacker = zlib.decompressobj(GZIP)
    async for piece in response.aiter_raw():
        yield unpacker.decompress(piece, MAX_BYTES + 1) if encoding == ENCODING else piece


def check_size(size: int) -> None:
    """Raise `ValueError` for more than `MAX_BYTES`."""
    if size > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES} bytes")


def failure(reply: Reply) -> ScoregateError:
    """Return the error of a response; `ServiceConnectionError` for an error page of a proxy."""
    request_id = reply.headers.get("x-request-id", "")
    error = error_of(problem_of(reply) or foreign_problem(reply), status=reply.status, request_id=request_id)
    if error.retry_after_s is None:
        error.retry_after_s = retry_after_s(reply.headers)
    return error


def foreign_problem(reply: Reply) -> Mapping[str, Any]:
    """Return a problem for the response of another program, such as a proxy."""
    if reply.status in OF_A_PROXY:
        code, detail = ServiceConnectionError.code, f"a proxy answered {reply.status} in place of {reply.url}"
    else:
        code, detail = ScoregateError.code, f"HTTP {reply.status} from {reply.url}, not in the service's form"
    return {"code": code, "detail": detail}


def problem_of(reply: Reply) -> Mapping[str, Any] | None:
    """Return the problem in a response of the service; None for the response of another program."""
    try:
        content = reply.json()
    except ScoregateError:
        return None
    ours = isinstance(content, dict) and "detail" in content and isinstance(content.get("code"), str)
    return content if ours else None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of the header `Retry-After`; dates are ignored, since clocks differ."""
    value = headers.get("retry-after", "").strip()
    return float(value) if value.isascii() and value.isdigit() else None
