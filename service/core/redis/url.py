"""The address of a Redis: which ones are taken, and what of one may be shown."""

import re
from importlib.util import find_spec

SCHEMES = ("redis://", "rediss://", "unix://")
ADDRESS = re.compile(
    r"rediss?://([^@/?#\s]*@)?(?P<host>[\w.-]+|\[[\da-fA-F:.]+\])(:(?P<port>\d{1,5}))?(/\d{0,4})?"
    r"|unix://([^@/?#\s]*@)?(?P<path>/[^@?#\s]+)(\?db=\d{1,4})?",
    re.ASCII,
)


def is_redis(place: str) -> bool:
    """Whether a cache's *place* is meant to be a Redis."""
    return place.startswith(SCHEMES)


def has_tls(url: str) -> bool:
    """Whether the connection is encrypted, and the server's certificate checked."""
    return url.startswith("rediss://")


def check(url: str) -> None:
    """Raises `ValueError`, with a sentence that quotes nothing of *url*: it may hold a password."""
    found = ADDRESS.fullmatch(url)
    if found is None or int(found["port"] or 0) > 65535:
        form = "redis://[USER:PASSWORD@]HOST[:PORT][/DB]"
        raise ValueError(f"not a Redis address; write {form}, with special characters percent-encoded")
    if find_spec("redis") is None:
        raise ValueError("needs the package redis: pip install '.[redis]' in the repository's folder")


def shown(url: str) -> str:
    """Host and port, or the path of a socket: all that people may see of it."""
    found = ADDRESS.fullmatch(url)
    assert found is not None, "`check` took it"
    return found["path"] or f"{found['host']}:{found['port'] or 6379}"
