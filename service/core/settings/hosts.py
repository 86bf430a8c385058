"""The list of hosts that images may be fetched from."""

import re
from collections.abc import Iterable

HOST = re.compile(r"([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?")
PORTS = {"http": 80, "https": 443}  # by scheme; no other scheme is fetched


def parse(entry: str) -> tuple[str, int | None]:
    """Return a listed host in lower case, and its port if one is listed.  Raises `ValueError`."""
    found = HOST.fullmatch(entry.lower())
    if not found or int(found[2] or 1) not in range(1, 65536):
        raise ValueError(f"{entry!r} is no host, such as images.example.org or images.example.org:8443")
    return found[1].strip("[]"), int(found[2]) if found[2] else None


def allowed(entries: Iterable[str], scheme: str, host: str, port: int | None) -> bool:
    """
    Return True if *entries* list the host and port; an entry without a port means the scheme's default port.
    """
    usual = PORTS.get(scheme)
    return usual is not None and any(
        (name, listed or usual) == (host.lower(), port or usual) for name, listed in map(parse, entries)
    )
