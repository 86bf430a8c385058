"""Pictures that people name one by one: files, folders and URLs, which are downloaded."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from scoregate.data.folders import image_files, left_out
from scoregate.data.rows import readable
from scoregate.data.tiles import Grid, cut
from scoregate.errors import InputError, reason_of
from scoregate.http import httpx
from scoregate.images import is_url
from scoregate.records import check_regular
from scoregate.text import LEFT_OUT, meant_file, say_unused

FETCH_S = 60.0
MAX_BYTES = 64 * 2**20  # bytes of a picture at a URL; a request has this limit by default


def read_images(names: Iterable[str]) -> tuple[list[tuple[str, bytes]], list[str]]:
    """
    Return the pictures with their names, and a line about each that cannot be read.

    A folder has the pictures of all its files, in order.

    Raises:
        InputError: a name leads to no picture or does not exist, or none can be read.
    """
    every = [(name, tried(name, name == given)) for given in names for name in names_of(given)]
    read = [(name, data) for name, (data, why) in every if not why]
    faults = [why for _, (_, why) in every if why]
    if not read:
        raise InputError(faults[0])
    return read, faults


def tiles_of(name: str, sheet: bytes, grid: Grid) -> list[tuple[str, bytes]]:
    """Return the tiles of a sheet, each with its number in its name.  Raises `InputError`."""
    try:
        return [(f"{name}#{number}", cut(sheet, grid, number)) for number in range(grid.tiles)]
    except ValueError as exc:
        raise InputError(f"{name}: {exc}") from None


def tried(name: str, given: bool) -> tuple[bytes, str]:
    """Return a picture's bytes, or a line that says why it cannot be read; a *given* name must exist."""
    try:
        return sendable(name), ""
    except InputError as exc:
        return b"", str(exc)
    except OSError as exc:
        if given and isinstance(exc, FileNotFoundError):
            raise InputError(f"{name}: {exc.strerror}{meant_file(name) or meant_prompt(name)}") from None
        return b"", f"{name}: {exc.strerror or exc}"


def meant_prompt(name: str) -> str:
    """Return how a prompt is given, for a text that is not like the name of a file; else an empty text."""
    return "" if Path(name).suffix else f'; is it the prompt? -p "{name}"'


def names_of(name: str) -> Iterator[str]:
    """Yield the names of a folder's pictures, or *name*."""
    folder = Path(name)
    if is_url(name) or not folder.is_dir():
        yield name
        return
    files = sorted(image_files(folder))
    if not files:
        raise InputError(f"{name}: there is no picture in this folder")
    say_unused(LEFT_OUT, left_out(folder))
    yield from map(str, files)


def sendable(name: str) -> bytes:
    """Return the bytes of one picture, in a format of the service.  Raises `OSError` or `InputError`."""
    if not is_url(name):
        check_regular(name)  # a device or a pipe may never end
    data = fetched(name) if is_url(name) else Path(name).read_bytes()
    if not data:
        raise InputError(f"{name}: the file is empty")
    try:
        return readable(data)
    except ValueError as exc:
        raise InputError(f"{name}: {exc}") from None


def fetched(url: str, transport: httpx.BaseTransport | None = None) -> bytes:
    """GET a URL, by default through the environment's proxy, if any.  Raises `InputError`."""
    data = bytearray()
    settings: dict[str, Any] = {"timeout": FETCH_S, "follow_redirects": True, "transport": transport}
    try:
        headers = {"Accept-Encoding": "identity"}
        with httpx.Client(**settings) as client, client.stream("GET", url, headers=headers) as response:
            response.raise_for_status()
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise InputError(f"{url}: was sent with a Content-Encoding, against the request")
            for block in response.iter_bytes():
                data += block
                if len(data) > MAX_BYTES:
                    raise InputError(f"{url}: has more than {MAX_BYTES} bytes")
    except httpx.HTTPStatusError as exc:
        raise InputError(f"{url}: HTTP status {exc.response.status_code}") from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as exc:
        raise InputError(f"{url}: {reason_of(exc)}") from None
    return bytes(data)
