"""
HTTP/1.1 on a socket: uvicorn's protocol with limits for slow and malicious callers.

uvicorn accepts every connection, waits for headers without end, reads bodies in chunks of any size, keeps a
response until it is read, and closes connections amid the next request when it drains.  Our subclass uses
private parts of it: `tests/unit/web/test_uvicorn.py` names each of them.
"""

import asyncio
import fcntl
import logging
import socket
import struct
import sys
import termios
import uuid
from collections.abc import Callable
from math import inf
from typing import Any, cast

import h11
from starlette.types import Message, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from service.core.errors import Malformed, Overloaded, RequestTimeout, ScoregateError
from service.observability.instruments import NO_LANE
from service.web.edge import mark
from service.web.problems import ErrorFormat, response_to
from service.web.server.body import ARRIVED_STATE, BROKEN_STATE, Pace
from service.wiring.bootstrap import Service

log = logging.getLogger("scoregate.connections")

SMALL_CHUNKS = 8192  # chunks of one body; each takes microseconds of the event loop
CHUNK_BYTES = 4096  # bytes for each chunk beyond

IDLE_S = 0.5  # time for a request in flight at SIGTERM
LINGER_S = 2.0  # time to read from a caller that is still sending


class Transport:
    """
    A wrapper of a transport.

    If it is closed while the caller is still sending, it ends writing and reads for a while: closing a socket
    with unread bytes resets the connection, and many callers would lose the response.

    It counts the written bytes that have not been read, and can drop them.

    Args:
        is_sent_to: returns True while the caller is sending.

    Attributes:
        held: writes that wait for `flush`, if it is a list: a packet for the headers alone costs as much as
            one for the whole response.
    """

    def __init__(self, transport: asyncio.Transport, is_sent_to: Callable[[], bool]) -> None:
        self._transport, self._is_sent_to = transport, is_sent_to
        self._closing = False
        self.held: list[bytes] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, content: bytes) -> None:
        """Write *content*, or add it to `held`."""
        if self.held is None:
            self._transport.write(content)
        else:
            self.held.append(content)

    def flush(self) -> None:
        """Write what is held, and hold no more."""
        if self.held is not None:
            self._transport.write(b"".join(self.held))
            self.held = None

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


class RequestParser(h11.Connection):
    """
    The h11 parser of a connection, which refuses bodies of very small chunks.

    Attributes:
        refusal: the reason of a refusal, if it is not h11's.
    """

    refusal = ""
    _chunks = _bytes = 0  # chunks and bytes of this body

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event.  Raises `h11.RemoteProtocolError`."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._bytes += len(event.data)
            if self._chunks > SMALL_CHUNKS + self._bytes // CHUNK_BYTES:
                self.refusal = f"the chunks of the body are too small: send {CHUNK_BYTES} bytes in each"
                raise h11.RemoteProtocolError(self.refusal)
        return event


class Protocol(H11Protocol):
    """
    One connection.

    Args:
        service: its settings, and whether it drains.
        max_connections: the limit of this server; more connections get 503 and are closed.
        makes_room: a connection above the limit replaces the one that has been idle for longest, if any is.
        error_format: of errors before a request has a path; None for a problem.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        service: Service,
        max_connections: int,
        makes_room: bool = False,
        error_format: ErrorFormat | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = self._reader = RequestParser(h11.SERVER)
        self._app, self.app = self.app, self._run
        self._service, self._max_connections = service, max_connections
        self._makes_room = makes_room
        self._error_format = error_format
        self._timeout_s = service.settings.server.body_timeout_s
        self._broken = False
        self._headers_late: asyncio.TimerHandle | None = None
        self._reading_late: asyncio.TimerHandle | None = None
        self._reading = Pace(self._timeout_s, 0.0)  # its time counts while writing is paused
        self._unread = 0  # bytes, at the last check

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, unless there are too many."""
        self._wire = Transport(transport, self._is_sent_to)
        self._wire.set_write_buffer_limits(0)  # pause writing while any bytes are unread
        super().connection_made(cast(asyncio.Transport, self._wire))
        if len(self.connections) > self._max_connections and not self._found_room():
            self._refuse(Overloaded(f"too many connections: at most {self._max_connections}"))
        elif self._service.draining:
            self.shutdown()
        else:  # a connection without a first request ends like an idle one
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        for timer in (self._headers_late, self._reading_late):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """
        Pause writing; written bytes must be read at the pace at which bodies must arrive.

        The time of all pauses counts together: a stream has one for each line.
        """
        super().pause_writing()
        if self._reading_late is None:
            self._reading.go(self.loop.time())
            self._unread = self._wire.unread()
            self._check_reading()

    def resume_writing(self) -> None:
        """Continue writing, since all bytes have been read."""
        if self._reading_late is not None:
            self._reading_late.cancel()
            self._reading_late = None
            now = self.loop.time()
            self._reading.came(self._unread, now)
            self._reading.stop(now)
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Parse more bytes; incomplete headers have a deadline."""
        if self._broken or self.transport.is_closing():
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE or not self.conn.trailing_data[0]:
            if self._headers_late is not None:
                self._headers_late.cancel()
                self._headers_late = None
        elif self._headers_late is None:
            late = RequestTimeout(f"the headers did not come within {self._timeout_s:g} s")
            self._headers_late = self.loop.call_later(self._timeout_s, self._refuse, late)

    def shutdown(self) -> None:
        """Close after the running response; without one, wait briefly for a request in flight."""
        if self.is_idle:
            self.loop.call_later(IDLE_S, self._close_if_idle)
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not HTTP; within a body, the request's own response has the error."""
        self._broken = True
        reason = self._reader.refusal or "this is not HTTP/1.1"
        if self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete:
            self.scope["state"][BROKEN_STATE] = reason
            self.cycle.message_event.set()
        else:
            self._refuse(Malformed(reason))

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the app; send its response in one write, with `Connection: close` if the connection ends."""
        cycle, wire = self.cycle, self._wire
        scope["state"][ARRIVED_STATE] = not cycle.more_body

        async def send_closing(message: Message) -> None:
            if message["type"] == "http.response.start":
                if cycle.more_body or not cycle.keep_alive or self._service.draining:
                    message["headers"] = [*message.get("headers", ()), CLOSE_HEADER]
                wire.held = []
                await send(message)
            else:
                await send(message)
                wire.flush()

        await self._app(scope, receive, send_closing)

    def _refuse(self, error: ScoregateError) -> None:
        """Respond to bytes that never became a request, and close."""
        log.warning("a connection was refused: %s", error.detail)
        self._service.instruments.count_request("other", error.status, 0.0, NO_LANE)
        request_id = uuid.uuid4().hex
        response = response_to(error, request_id, self._service.instruments, self._error_format)
        mark(response.headers, request_id)
        headers = [*response.raw_headers, CLOSE_HEADER]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            start = h11.Response(status_code=error.status, headers=headers)
            for event in (start, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event))
        self.transport.close()

    def _check_reading(self) -> None:
        """Check again when the window ends; close the connection if too little was read."""
        now, left, pace = self.loop.time(), self._wire.unread(), self._reading
        pace.came(max(0, self._unread - left), now)
        self._unread = left
        if now < pace.deadline:
            self._reading_late = self.loop.call_at(pace.deadline, self._check_reading)
        else:
            log.warning("a connection was closed: the caller does not read the answer")
            self._wire.drop()

    def _is_sent_to(self) -> bool:
        """Return True while the caller is sending a request."""
        midst = self.conn.their_state in (h11.SEND_BODY, h11.ERROR)
        return midst or self._broken or self._headers_late is not None

    def _found_room(self) -> bool:
        """Return True if there is room for this connection; drop an idle one if needed and allowed."""
        if not self._makes_room:
            return False
        connections = cast("set[Protocol]", self.connections)
        others = [each for each in connections if each is not self and not each.transport.is_closing()]
        if len(others) < self._max_connections:
            return True
        idle = [each for each in others if each.is_idle]
        if idle:
            min(idle, key=Protocol._ends_at)._wire.drop()
        return bool(idle)

    def _ends_at(self) -> float:
        """Return when an idle connection ends, if no bytes of another request have come."""
        timer = self.timeout_keep_alive_task
        return inf if timer is None else timer.when()

    @property
    def is_idle(self) -> bool:
        """Return True if no request is being processed."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def _close_if_idle(self) -> None:
        if not self.transport.is_closing() and self.is_idle:
            super().shutdown()
