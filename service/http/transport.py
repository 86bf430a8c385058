"""The transport of a connection, as callers need it who read slowly, still send, or send no more."""

import asyncio
from collections.abc import Callable
from typing import Any

LINGER_S = 2.0  # a caller who is still sending is heard so long
BEGINNING = b"HTTP/1.1 "  # of every answer


class Transport:
    """
    Another transport, with two more things that it can do.

    Closed while the caller is still sending, it ends what it writes, and reads on for a while: a socket that
    is closed with bytes unread resets the connection, and many a caller loses the answer.

    It can begin an answer before there is one.  A caller who has left resets the connection then, which is
    all that tells it from a caller who has only ended its own side.

    Args:
        is_sent_to: whether the caller is in the midst of sending something.
    """

    def __init__(self, transport: asyncio.Transport, is_sent_to: Callable[[], bool]) -> None:
        self._transport, self._is_sent_to = transport, is_sent_to
        self._begun = self._closing = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def begin(self) -> None:
        """Write what the next answer begins with, whatever it will be."""
        self._begun = True
        self._transport.write(BEGINNING)

    def write(self, content: bytes) -> None:
        """Write *content*, or the rest of it where its beginning is written."""
        if self._begun:
            self._begun, content = False, content.removeprefix(BEGINNING)
        self._transport.write(content)

    def is_closing(self) -> bool:
        """Whether nothing can be written any more, and nothing that comes matters."""
        return self._closing or self._transport.is_closing()

    def close(self) -> None:
        """Close it, once what was written is on its way."""
        if self.is_closing():
            return
        self._closing = True
        if self._is_sent_to():
            self._transport.write_eof()
            self._transport.resume_reading()
            asyncio.get_running_loop().call_later(LINGER_S, self._transport.close)
        else:
            self._transport.close()
