"""Addresses of a Redis: validation, and the part that may be shown."""

import re
from importlib.util import find_spec

SCHEMES = ("redis://", "rediss://", "unix://")
ADDRESS = re.compile(
    r"rediss?://([^@/?#\s]*@)?(?P<host>[\w.-]+|\[[\da-fA-F:.]+\])(:(?P<port>\d{1,5}))?(/\d{0,4})?"
    r"|unix://([^@/?#\s]*@)?(?P<path>/[^@?#\s]+)(\?db=\d{1,4})?",
    re.ASCII,
)


def is_redis(place: str) -> bool:
    """Return True if a cache's *place* is the address of a Redis."""
    return place.startswith(SCHEMES)


def has_tls(url: str) -> bool:
    """Return True if the connection is encrypted and the server's certificate is checked."""
    return url.startswith("rediss://")


def check(url: str) -> None:
    """
    Check an address.  Raises `ValueError` with a message that never quotes *url*, which may hold a password.
    """
    found = ADDRESS.fullmatch(url)
    if found is None or int(found["port"] or 1) not in range(1, 65536):
        form = "redis://[USER:PASSWORD@]HOST[:PORT][/DB]"
        raise ValueError(f"not a Redis address; write {form}, with special characters percent-encoded")
    if find_spec("redis") is None:
        raise ValueError("needs the package redis: pip install '.[redis]' in the repository's folder")


def shown(url: str) -> str:
    """Return host and port, or a socket's path: the only part that logs may contain."""
    found = ADDRESS.fullmatch(url)
    assert found is not None, "`check` took it"
    return found["path"] or f"{found['host']}:{found['port'] or 6379}"
