"""Addresses of services: their form, which of several gets a request; and the key."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any

from scoregate.errors import ScoregateError, ServiceConnectionError, ServiceTimeoutError
from scoregate.http import httpx

KEY = re.compile(r"[!-~]+")

VARIABLE, DEFAULT = "SCOREGATE_BASE_URL", "http://127.0.0.1:8000"
UNIX = "unix:"
MAX_SOCKET_BYTES = 107  # the kernel accepts no longer path of a Unix socket

REST_S, MAX_REST_S = 0.5, 30.0  # rest after the first failure, which further ones double
SILENT_S = 1.0  # silence of a service, which itself answers before the deadline of its request


@dataclass(eq=False)
class Address:
    """
    An address, and its requests in one event loop.  All times are of one clock.

    Attributes:
        http: the connections to it; None before the first one.
        waiting: requests without a complete response.
        busy_until: the end of its last `Retry-After`.
        rests_until: the time until which it gets no request, since the last ones failed.
    """

    url: str
    http: Any = None
    waiting: int = 0
    busy_until: float = -inf
    rests_until: float = -inf
    _failures: int = 0  # failures in a row
    _failed_at: float = -inf

    def is_free(self, now: float) -> bool:
        """Return True if it is neither busy nor resting."""
        return max(self.busy_until, self.rests_until) <= now

    @contextmanager
    def request(self, clock: Callable[[], float]) -> Iterator[None]:
        """Count a request that is sent in this context, and note whether it fails."""
        sent = clock()
        if self._failures:  # one request finds out whether it is back
            self._rest(sent)
        self.waiting += 1
        try:
            yield
        except ScoregateError as exc:
            self._note(exc, sent, clock())
            raise
        else:
            self.answered()
        finally:
            self.waiting -= 1

    def _note(self, error: ScoregateError, sent: float, now: float) -> None:
        """Note the error of a request that was *sent* then."""
        if error.retry_after_s is not None:
            self.busy_until = max(self.busy_until, now + error.retry_after_s * random.uniform(1.0, 1.25))
        if not isinstance(error, (ServiceConnectionError, ServiceTimeoutError)):
            self.answered()
        elif sent >= self._failed_at and (
            isinstance(error, ServiceConnectionError) or now - sent >= SILENT_S
        ):
            self._failures += 1  # once for all requests that were under way
            self._failed_at = now
            self._rest(now)

    def answered(self) -> None:
        """Note that it works."""
        self._failures, self.rests_until = 0, -inf

    def _rest(self, now: float) -> None:
        rest_s = min(MAX_REST_S, REST_S * 2.0 ** min(self._failures - 1, 16))
        self.rests_until = now + rest_s * random.uniform(1.0, 1.25)


def choice(addresses: Sequence[Address], now: float) -> Address:
    """
    Return the free address with the fewest waiting requests; without a free one, that which is free first.

    Of equal ones one at random, so that many processes do not all begin with the first.
    """
    return min(
        addresses,
        key=lambda each: (
            max(each.busy_until, now),
            max(each.rests_until, now),
            each.waiting,
            random.random(),
        ),
    )


def addresses_of(given: Sequence[str] | str | None) -> list[str]:
    """
    Return services' addresses without a final slash: *given*, those of the environment, or the default.

    Args:
        given: a list, or a text with commas between them.

    Raises:
        ValueError: an address is not valid.  The message has no password in it.
    """
    name = "base_url" if given else VARIABLE
    every = given or os.environ.get(VARIABLE) or DEFAULT
    urls = [normal(each) for each in (every.split(",") if isinstance(every, str) else every)]
    for url in urls:
        if why := fault(url):
            raise ValueError(f"{name} {why}" + ("" if "@" in url else f", and is {url[:200]!r}"))
    return list(dict.fromkeys(urls))


def normal(given: str) -> str:
    """Return an address with its scheme in lower case and without a final slash; `unix:///` as `unix:/`."""
    if is_unix(given.lower()):
        return f"{UNIX}{given[len(UNIX) :].replace('///', '/', 1)}"
    scheme, separator, rest = given.partition("://")
    return f"{scheme.lower()}{separator}{rest.rstrip('/')}"


def is_unix(url: str) -> bool:
    """Return True for the address of a Unix socket."""
    return url.startswith(UNIX)


def socket_of(url: str) -> str:
    """Return the path of a Unix socket from its address."""
    return url[len(UNIX) :]


def fault(url: str) -> str:
    """Return why *url* cannot be the address of a service; empty if it can."""
    if is_unix(url):
        path = socket_of(url)
        if not path.startswith("/") or path.startswith("//") or not path.isprintable():
            return "must name an absolute path after unix:, as in unix:/run/scoregate.sock"
        long = len(os.fsencode(path)) > MAX_SOCKET_BYTES
        return f"must have a path of at most {MAX_SOCKET_BYTES} bytes" if long else ""
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
