"""The transport of a connection, as callers need it who read slowly, still send, or send no more."""

import asyncio
import fcntl
import socket
import struct
import sys
import termios
from collections.abc import Callable
from typing import Any

LINGER_S = 2.0  # a caller who is still sending is heard so long


class Transport:
    """
    Another transport, which can do more.

    Closed while the caller is still sending, it ends what it writes, and reads on for a while: a socket that
    is closed with bytes unread resets the connection, and many a caller loses the answer.

    It tells how much of what was written has not been read, and can forget that.

    Args:
        is_sent_to: whether the caller is in the midst of sending something.
    """

    def __init__(self, transport: asyncio.Transport, is_sent_to: Callable[[], bool]) -> None:
        self._transport, self._is_sent_to = transport, is_sent_to
        self._closing = False
        self._held: list[bytes] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def hold(self) -> None:
        """Keep what is written until `flush`: a packet for the headers alone costs as much as one for all."""
        self._held = []

    def flush(self) -> None:
        """Write what was kept, at once."""
        if self._held is not None:
            content, self._held = b"".join(self._held), None
            self.write(content)

    def write(self, content: bytes) -> None:
        """Write *content*, or keep it until `flush`."""
        if self._held is None:
            self._transport.write(content)
        else:
            self._held.append(content)

    def unread(self) -> int:
        """How many bytes were written that the caller's system has not taken, as far as that can be told."""
        queued = bytearray(4)  # what our own system holds
        fcntl.ioctl(self._transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, queued)
        return self._transport.get_write_buffer_size() + int.from_bytes(queued, sys.byteorder)

    def drop(self) -> None:
        """Close it at once, and forget what was not read, in our own system, too."""
        at_once = struct.pack("ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether nothing can be written any more, and nothing that comes matters."""
        return self._closing or self._transport.is_closing()

    def close(self) -> None:
        """Close it, once what was written is on its way."""
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
