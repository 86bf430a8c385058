"""
A small HTTP/1.1 client, since the cost of a general one would be measured with the server's.

Keeps connections open, as many as there are concurrent requests; sends prepared JSON bodies; reads
responses with a Content-Length, as all tested servers send.
"""

import asyncio
from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType
from typing import Self

STALE_S = 2.0  # below the keep-alive time of any server: older idle connections are replaced


@dataclass(slots=True)
class Connection:
    """A connection, when it was last used, and whether the server closes it after this response."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    used: float = field(default_factory=monotonic)
    closing: bool = False


class Client:
    """A pool of connections to one server."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._idle: list[Connection] = []

    async def __aenter__(self) -> Self:
        """Return the client; connections are opened on demand."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        for connection in self._idle:
            connection.writer.close()

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """
        Send a request; return the response's status and body.

        Raises:
            OSError: the connection failed.
            ValueError: the response has no Content-Length.
        """
        connection = await self._connect()
        try:
            answer = await self._exchange(connection, path, body)
        except BaseException:
            connection.writer.close()  # its response is incomplete
            raise
        if connection.closing:
            connection.writer.close()
        else:
            connection.used = monotonic()
            self._idle.append(connection)
        return answer

    async def _connect(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if monotonic() - connection.used < STALE_S:
                return connection
            connection.writer.close()
        return Connection(*await asyncio.open_connection(self._host, self._port, limit=2**22))

    async def _exchange(self, connection: Connection, path: str, body: bytes) -> tuple[int, bytes]:
        request = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        connection.writer.write(request.encode() + body)
        try:
            head = await connection.reader.readuntil(b"\r\n\r\n")
            status, length = parse_head(head)
            connection.closing = b"\r\nconnection: close\r\n" in head.lower()
            return status, await connection.reader.readexactly(length)
        except asyncio.IncompleteReadError as exc:
            raise ConnectionResetError("the server closed the connection") from exc


def parse_head(head: bytes) -> tuple[int, int]:
    """Return status and Content-Length.  Raises `ValueError` if there is none."""
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
    if "content-length" not in fields:
        raise ValueError("an answer without a Content-Length")
    return int(first.split(" ", 2)[1]), int(fields["content-length"])
