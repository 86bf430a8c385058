"""HTTP by hand: what no client library would send, and what comes back."""

import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from typing import Any

import orjson

from demo.process import HOST

PATIENCE_S = 60


class Caller:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=PATIENCE_S)

    def send(self, *pieces: bytes) -> "Caller":
        """Send what the server still takes; it may have closed its side."""
        try:
            for piece in pieces:
                self.socket.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return self

    def answer(self) -> "Answer":
        """The next answer."""
        with HTTPResponse(self.socket) as response:
            response.begin()
            return Answer(response.status, response.headers, response.read())

    def is_closed(self) -> bool:
        """Whether the server has nothing more to say and says so."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


class Answer:
    """Status, headers and body."""

    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def said(self) -> tuple[int, str]:
        """The status, and the code of a problem."""
        return self.status, orjson.loads(self.body).get("code", "")

    @property
    def closes(self) -> bool:
        """Whether the connection ends with it."""
        return self.headers.get("connection") == "close"


@contextmanager
def calling(port: int, number: int = 1) -> Iterator[list[Caller]]:
    """So many connections."""
    callers: list[Caller] = []
    try:
        callers.extend(Caller(port) for _ in range(number))
        yield callers
    finally:
        for caller in callers:
            caller.socket.close()


def head(path: str = "/score", method: str = "POST", **headers: object) -> bytes:
    """The head of a request; underscores in the names of headers are dashes."""
    lines = {"Host": "x", "Content-Type": "application/json"} | headers
    fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{fields}\r\n".encode()


def chunked(pieces: Iterable[bytes]) -> bytes:
    """A body in chunks."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in [*pieces, b""])
