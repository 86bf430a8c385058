"""The transport of a connection, for callers who read slowly or still send."""

import asyncio
import fcntl
import socket
import struct
import sys
import termios
from collections.abc import Callable
from typing import Any

LINGER_S = 2.0  # time to read from a caller that is still sending


class Transport:
    """
    A wrapper of a transport.

    If it is closed while the caller is still sending, it ends writing and reads for a while: closing a socket
    with unread bytes resets the connection, and many callers would lose the response.

    It counts the written bytes that have not been read, and can drop them.

    Args:
        is_sent_to: returns True while the caller is sending.
    """

    def __init__(self, transport: asyncio.Transport, is_sent_to: Callable[[], bool]) -> None:
        self._transport, self._is_sent_to = transport, is_sent_to
        self._closing = False
        self._held: list[bytes] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def hold(self) -> None:
        """Buffer writes until `flush`: a packet for the headers alone costs as much as one for all."""
        self._held = []

    def flush(self) -> None:
        """Write the buffer."""
        if self._held is not None:
            content, self._held = b"".join(self._held), None
            self.write(content)

    def write(self, content: bytes) -> None:
        """Write *content*, or buffer it until `flush`."""
        if self._held is None:
            self._transport.write(content)
        else:
            self._held.append(content)

    def unread(self) -> int:
        """Estimate the written bytes that the caller's system has not acknowledged."""
        queued = bytearray(4)  # bytes in our own system
        fcntl.ioctl(self._transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, queued)
        return self._transport.get_write_buffer_size() + int.from_bytes(queued, sys.byteorder)

    def drop(self) -> None:
        """Close immediately, and drop unread bytes in our own system, too."""
        immediately = struct.pack("ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, immediately)
        self._transport.abort()

    def is_closing(self) -> bool:
        """Return True if the connection is closed or only reads for a while."""
        return self._closing or self._transport.is_closing()

    def close(self) -> None:
        """Close after sending the written bytes."""
        if self.is_closing():
            return
        self.flush()
        self._closing = True
        if self._is_sent_to():
            self._transport.write_eof()
            self._transport.resume_reading()
            asyncio.get_running_loop().call_later(LINGER_S, self._transport.close)
        else:
            self._transport.close()
