"""
`python -m loadtest.attacks.serve`: the service with a fake resolver, for attacks by URL.

Names that end in `.test` resolve to this machine, whose addresses count as public; names that end in
`slow.test` fail to resolve after nine seconds.
"""

import socket
import sys
import time
from typing import Any

from service.images import fetcher
from service.process.command import main

SLOW_S = 9


def lookup(host: bytes | str, port: int, *args: Any, **options: Any) -> Any:
    """Replace the system's resolver."""
    name = host.decode() if isinstance(host, bytes) else host
    if name.endswith("slow.test"):
        time.sleep(SLOW_S)
        raise socket.gaierror(socket.EAI_AGAIN, "temporary failure in name resolution")
    return real("127.0.0.1" if name.endswith(".test") else name, port, *args, **options)


def anything(address: str) -> bool:
    """Replace the check that an address is public."""
    return True


if __name__ == "__main__":
    real: Any = socket.getaddrinfo
    setattr(socket, "getaddrinfo", lookup)  # noqa: B010 (its type is the real one's)
    fetcher.PublicNetwork.__init__.__defaults__ = (fetcher.resolve, anything)
    sys.exit(main())
