"""HTTP calls with timeouts and retries; responses are read and decompressed within limits."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from scoregate.errors import ConnectionFailed, ScoregateError, Timeout, error_of, reason_of
from scoregate.http import httpx

T = TypeVar("T")
CONNECT_S = 10.0  # for one attempt to connect
IDLE_S = 30.0  # of an idle connection; less than the service's 75 s, so that the client closes it
KEY = re.compile(r"[!-~]+")
LONGEST_MS = 600_000  # maximum that the service accepts

MAX_BYTES = 32 * 2**20  # of an answer, decompressed; one about 128 items with all their details has a few
ENCODING = "gzip"  # the only one accepted, since it can be decompressed incrementally
GZIP = 16 + zlib.MAX_WBITS
OF_A_PROXY = (429, 502, 503, 504)  # without a code of the service: it was not reached
FIRST_S = 0.1  # before the first retry, doubled for each further one
BUSY = (429, 503)


class Connection:
    """
    Connections to one service: a pool for each event loop, since connections belong to their loop.

    A forked process has its own loop, so it never uses its parent's connections.
    """

    def __init__(
        self, base_url: str, api_key: str, retries: int, max_connections: int, transport: Any
    ) -> None:
        self.base_url = base_url
        self._headers = {"Accept-Encoding": ENCODING}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._retries = retries
        self._limits = httpx.Limits(
            max_connections=max_connections,
            max_keepalive_connections=max_connections,
            keepalive_expiry=IDLE_S,
        )
        if transport is not None and not isinstance(transport, httpx.AsyncBaseTransport):
            kind = type(transport)
            raise TypeError(f"transport must be of httpx2, and is a {kind.__module__}.{kind.__qualname__}")
        self._transport = transport
        self._pools: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Support pickling, without connections."""
        return {**self.__dict__, "_pools": {}}

    async def call(
        self,
        method: str,
        path: str,
        timeout_s: float,
        content: bytes | None = None,
        content_type: str = "application/json",
    ) -> Any:
        """
        Return the JSON of the response.

        Raises:
            Timeout: *timeout_s* passed; the service may have done some of the work.
            ConnectionFailed: no attempt got a response of the service.
            ScoregateError: the error of the service; that of the last attempt if it was busy.
        """

        async def answered(left: float) -> Any:
            headers = headers_of(left, content_type if content is not None else "")
            reply = await self._send(method, path, left, content, headers)
            if reply.status != 200:
                raise failure(reply)
            return reply.json()

        return await self._retried(answered, timeout_s)

    async def lines(
        self, path: str, timeout_s: float, content_type: str, content: bytes
    ) -> AsyncGenerator[tuple[str, bytes], None]:
        """
        POST, and yield each line of the response when it is there, with the request's id.

        Raises:
            Timeout, ConnectionFailed, ScoregateError: as `call`; after the first line nothing is retried.
        """
        clock = asyncio.get_running_loop().time
        deadline, size, rest = clock() + timeout_s, 0, b""
        async with AsyncExitStack() as stack:

            async def opened(left: float) -> tuple[str, AsyncIterator[bytes]]:
                opening = self._opened(path, left, content, headers_of(left, content_type))
                return await stack.enter_async_context(opening)

            request_id, pieces = await self._retried(opened, timeout_s)
            while piece := await self._in_time(next_of(pieces), deadline - clock(), path):
                size += len(piece)
                if size > MAX_BYTES:
                    raise ScoregateError(
                        f"{path} answered more than {MAX_BYTES} bytes", request_id=request_id
                    )
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield request_id, line

    async def _retried(self, attempt: Callable[[float], Awaitable[T]], timeout_s: float) -> T:
        """Return the result of *attempt*, called with the seconds left, and again after temporary errors."""
        loop = asyncio.get_running_loop()
        deadline, attempts = loop.time() + timeout_s, 0
        while True:
            attempts += 1
            try:
                return await attempt(deadline - loop.time())
            except ScoregateError as exc:
                wait = wait_s(exc, attempts)
                late = loop.time() + wait >= deadline
                if attempts > self._retries or late or not worth_a_retry(exc):
                    raise
            await asyncio.sleep(wait)

    async def probe(self, path: str, timeout_s: float) -> tuple[bool, Any]:
        """GET once; return whether the status is 200, and the JSON.  Raises `ScoregateError`."""
        reply = await self._send("GET", path, timeout_s, None, {})
        if reply.status != 200 and problem_of(reply) is None:
            raise failure(reply)
        return reply.status == 200, reply.json()

    async def close(self) -> None:
        """Close the connections of this event loop."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.aclose()

    async def _send(
        self, method: str, path: str, left: float, content: bytes | None, headers: Mapping[str, str]
    ) -> Reply:
        async def exchanged() -> Reply:
            async with self._sent(method, path, left, content, headers) as response:
                return await reply_of(response)

        return await self._in_time(exchanged(), left, path)

    async def _in_time(self, work: Coroutine[Any, Any, T], left: float, path: str) -> T:
        """Return the result of *work*.  Raises `Timeout` after *left* seconds."""
        try:
            return await asyncio.wait_for(work, left)
        except (asyncio.TimeoutError, TimeoutError):
            raise Timeout(f"no answer from {self.base_url}{path} in time") from None

    @asynccontextmanager
    async def _opened(
        self, path: str, left: float, content: bytes, headers: Mapping[str, str]
    ) -> AsyncIterator[tuple[str, AsyncIterator[bytes]]]:
        """POST, and yield the request's id and the pieces of the response.  Raises its error."""
        async with self._sent("POST", path, left, content, headers) as response:
            if response.status_code != 200:
                raise failure(await reply_of(response))
            yield response.headers.get("x-request-id", ""), response.aiter_bytes()

    @asynccontextmanager
    async def _sent(
        self, method: str, path: str, left: float, content: bytes | None, headers: Mapping[str, str]
    ) -> AsyncIterator[httpx.Response]:
        """Yield a response whose content has not been read; raise our errors in place of httpx2's."""
        timeout = httpx.Timeout(max(left, 0.001), connect=max(min(left, CONNECT_S), 0.001))
        sent = self._pool().stream(method, path, content=content, headers=headers, timeout=timeout)
        try:
            async with sent as response:
                yield response
        except httpx.ConnectTimeout:
            raise ConnectionFailed(
                f"cannot connect to {self.base_url} within {timeout.connect:.0f} s"
            ) from None
        except httpx.TimeoutException:
            raise Timeout(f"no answer from {self.base_url}{path} in time") from None
        except httpx.RequestError as exc:
            raise ConnectionFailed(f"{self.base_url}: {reason_of(exc)}") from None

    def _pool(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            for other in [other for other in list(self._pools) if other.is_closed()]:
                self._pools.pop(other, None)
            self._pools[loop] = httpx.AsyncClient(
                base_url=self.base_url,
                headers=self._headers,
                limits=self._limits,
                transport=self._transport,
                trust_env=False,  # no proxy and no .netrc of the environment
                verify=self.base_url.startswith("https"),  # reading certificates takes 30 ms
            )
        return self._pools[loop]


def headers_of(left: float, content_type: str = "") -> dict[str, str]:
    """Return the headers of a request with so many seconds left."""
    headers = {"X-Request-Timeout-Ms": str(of_the_service_ms(left))}
    return headers | {"Content-Type": content_type} if content_type else headers


async def next_of(pieces: AsyncIterator[bytes]) -> bytes:
    """Return the next piece that is not empty; an empty one at the end."""
    async for piece in pieces:
        if piece:
            return piece
    return b""


def of_the_service_ms(left: float) -> int:
    """Return the service's deadline: a little less than the time left, so that its response arrives."""
    return max(1, min(LONGEST_MS, int(1000 * (left - min(1.0, left / 20)))))


def base_url_of(given: str | None) -> str:
    """
    Return the service's address without a final slash: *given*, that of the environment, or the default.

    Raises:
        ValueError: the address is not valid.  The message has no password in it.
    """
    name = "base_url" if given else "SCOREGATE_BASE_URL"
    scheme, separator, rest = (given or os.environ.get(name) or "http://127.0.0.1:8000").partition("://")
    url = f"{scheme.lower()}{separator}{rest.rstrip('/')}"
    if why := address_fault(url):
        raise ValueError(f"{name} {why}" + ("" if "@" in url else f", and is {url[:200]!r}"))
    return url


def address_fault(url: str) -> str:
    """Return why *url* cannot be the address of a service; empty if it can."""
    if not url.startswith(("http://", "https://")):
        return "must begin with http:// or https://"
    if " " in url or not url.isprintable():
        return "must not have spaces or line breaks"
    if "?" in url or "#" in url:
        return "must not have a query or a fragment"
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return "is not a valid address"
    if parsed.userinfo:
        return "must not have a user or a password"
    if not parsed.host:
        return "must name a host"
    return "" if parsed.port is None or 0 < parsed.port < 2**16 else "must have a port from 1 to 65535"


def api_key_of(given: str | None) -> str:
    """
    Return the key: *given*, that of the environment, or an empty one.

    Raises:
        ValueError: a header cannot hold the key.  The message does not quote it.
    """
    name = "SCOREGATE_API_KEY" if given is None else "api_key"
    key = os.environ.get(name, "") if given is None else given
    if key and not KEY.fullmatch(key):
        raise ValueError(f"{name} must have visible ASCII characters only, no spaces and no line break")
    return key


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


async def reply_of(response: httpx.Response) -> Reply:
    """
    Read the rest of a response.

    Raises:
        ScoregateError: it is longer than `MAX_BYTES`, or has another content encoding than `ENCODING`.
        httpx2.RequestError: the connection broke.
    """
    url, status = str(response.request.url), response.status_code
    try:
        content = await decompressed(response)
    except (ValueError, zlib.error) as exc:
        raise ScoregateError(f"cannot read what {url} answered: {exc}", status=status) from exc
    return Reply(url, status, response.headers, content)


async def decompressed(response: httpx.Response) -> bytes:
    """Return the content.  Raises `ValueError` and `zlib.error`."""
    if response.is_stream_consumed:  # a transport for tests has read and decompressed it
        check_size(len(response.content))
        return response.content
    encoding, content = response.headers.get("content-encoding", "identity").lower(), bytearray()
    if encoding not in (ENCODING, "identity"):
        raise ValueError(f"the content encoding {encoding[:40]!r} is not accepted")
    unpacker = zlib.decompressobj(GZIP)
    async for piece in response.aiter_raw():
        room = MAX_BYTES + 1 - len(content)
        content += unpacker.decompress(piece, room) if encoding == ENCODING else piece[:room]
        check_size(len(content))
    return bytes(content)


def check_size(size: int) -> None:
    """Raise `ValueError` for more than `MAX_BYTES`."""
    if size > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES} bytes")


def failure(reply: Reply) -> ScoregateError:
    """Return the error of a response; `ConnectionFailed` for an error page of a proxy."""
    request_id = reply.headers.get("x-request-id", "")
    error = error_of(problem_of(reply) or foreign_problem(reply), status=reply.status, request_id=request_id)
    if error.retry_after_s is None:
        error.retry_after_s = retry_after_s(reply.headers)
    return error


def foreign_problem(reply: Reply) -> Mapping[str, Any]:
    """Return a problem for the response of another program, such as a proxy."""
    if reply.status in OF_A_PROXY:
        code, detail = ConnectionFailed.code, f"a proxy answered {reply.status} in place of {reply.url}"
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


def worth_a_retry(error: ScoregateError) -> bool:
    """Return True if the same request may succeed later."""
    return isinstance(error, ConnectionFailed) or error.status in BUSY


def wait_s(error: ScoregateError, attempt: int) -> float:
    """
    Return the seconds before the next attempt: doubled each time, and at least `Retry-After`.

    Randomized, so that callers that were rejected together do not retry together.
    """
    backoff: float = FIRST_S * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
    return max(backoff, (error.retry_after_s or 0.0) * random.uniform(1.0, 1.25))


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of the header `Retry-After`; dates are ignored, since clocks differ."""
    value = headers.get("retry-after", "").strip()
    return float(value) if value.isascii() and value.isdigit() else None


def form(request: Mapping[str, Any], files: Mapping[str, bytes]) -> tuple[str, bytes]:
    """
    Return the content type and the body: *request* as JSON in the part `request`, then the files.

    The body is joined here, since httpx2 would write each part to the socket separately: for 32 small files,
    the writes would take 6 ms of the event loop, and one write takes 1 ms.

    Raises:
        ValueError: a number of the request is not finite.
        TypeError: a value of the request is not JSON.
    """
    content = json.dumps(request, allow_nan=False).encode()
    parts: dict[str, Any] = {"request": (None, content, "application/json")}
    parts |= {name: (name, data) for name, data in files.items()}
    built = httpx.Request("POST", "", files=parts)
    return built.headers["Content-Type"], built.read()
