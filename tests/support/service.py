"""A running service from outside: its instruments, and waiting for what will come."""

import re
import time
from collections.abc import Callable

import httpx

from demo.process import url


def series(port: int, name: str) -> float:
    """The value of a Prometheus series; 0 where it has none yet."""
    # To read certificates, which nothing here needs, would take 20 ms of each look.
    shown = httpx.get(f"{url(port)}/metrics", timeout=60, trust_env=False, verify=False)
    return value_of(shown.text, name)


def value_of(shown: str, name: str) -> float:
    """The value of a series in what `/metrics` shows; 0 where it has none yet."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", shown, re.MULTILINE)
    return float(found[1]) if found else 0.0


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Return once it is."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)
