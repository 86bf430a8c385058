"""Pictures that are named on the command line: files, folders and URLs."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from scoregate.cli.datasets import pictures
from scoregate.cli.exits import UsageFault
from scoregate.cli.heic import readable
from scoregate.errors import reason_of
from scoregate.http import httpx
from scoregate.images import check_regular, is_url

FETCH_S = 60.0
MAX_BYTES = 64 * 2**20  # of a URL; the default limit of a request


def read_pictures(names: Iterable[str]) -> tuple[list[tuple[str, bytes]], list[str]]:
    """
    Return the pictures with their names, and a line about each that cannot be read.

    A folder has the pictures of all its files, in order.

    Raises:
        OSError: a file that was named does not exist.
        UsageFault: a name leads to no picture, or none can be read.
    """
    every = [(name, tried(name, name == given)) for given in names for name in found(given)]
    read = [(name, data) for name, (data, why) in every if not why]
    faults = [why for _, (_, why) in every if why]
    if not read:
        raise UsageFault(faults[0])
    return read, faults


def tried(name: str, given: bool) -> tuple[bytes, str]:
    """Return a picture's bytes, or a line that says why it cannot be read; a *given* name must exist."""
    try:
        return sendable(name), ""
    except UsageFault as exc:
        return b"", str(exc)
    except OSError as exc:
        if given and isinstance(exc, FileNotFoundError):
            raise
        return b"", f"{name}: {exc.strerror or exc}"


def found(name: str) -> Iterator[str]:
    """Yield the names of a folder's pictures, or *name*."""
    folder = Path(name)
    if is_url(name) or not folder.is_dir():
        yield name
        return
    files = sorted(pictures(folder))
    if not files:
        raise UsageFault(f"{name}: there is no picture in this folder")
    yield from map(str, files)


def sendable(name: str) -> bytes:
    """Return the bytes of one picture, in a format of the service.  Raises `OSError` or `UsageFault`."""
    if not is_url(name):
        check_regular(name)  # a device or a pipe may never end
    data = fetched(name) if is_url(name) else Path(name).read_bytes()
    if not data:
        raise UsageFault(f"{name}: the file is empty")
    try:
        return readable(data)
    except ValueError as exc:
        raise UsageFault(f"{name}: {exc}") from None


def fetched(url: str) -> bytes:
    """GET a URL, through the environment's proxy, if any.  Raises `UsageFault`."""
    data = bytearray()
    try:
        with httpx.stream("GET", url, timeout=FETCH_S, follow_redirects=True) as response:
            response.raise_for_status()
            for block in response.iter_bytes():
                data += block
                if len(data) > MAX_BYTES:
                    raise UsageFault(f"{url}: has more than {MAX_BYTES} bytes")
    except httpx.HTTPStatusError as exc:
        raise UsageFault(f"{url}: HTTP status {exc.response.status_code}") from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as exc:
        raise UsageFault(f"{url}: {reason_of(exc)}") from None
    return bytes(data)
