"""What is read from a connection, and how one ends."""

import asyncio
from types import SimpleNamespace

import h11
import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from service.web.server.body import MIN_BYTES_PER_S
from service.web.server.protocol import CHUNK_BYTES, SMALL_CHUNKS, Protocol, RequestParser, Transport
from tests.support.raw import chunked, head

pytestmark = pytest.mark.anyio


def read(body):
    """The events of a request with a body in chunks."""
    reader = RequestParser(h11.SERVER)
    reader.receive_data(head(Transfer_Encoding="chunked") + body)
    events = []
    while (event := reader.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
        events.append(event)
        if isinstance(event, h11.EndOfMessage):
            break
    return events


def test_a_body_may_have_thousands_of_small_chunks_and_no_more():
    """A few more end the reading."""
    assert isinstance(read(chunked([b"x"] * SMALL_CHUNKS))[-1], h11.EndOfMessage)
    with pytest.raises(h11.RemoteProtocolError, match="too small"):
        read(chunked([b"x"] * (SMALL_CHUNKS + 10)))


def test_a_body_may_have_any_number_of_chunks_that_are_not_small():
    """Each brings the right to be."""
    chunks = [bytes(CHUNK_BYTES)] * (SMALL_CHUNKS + 100)

    assert isinstance(read(chunked(chunks))[-1], h11.EndOfMessage)


class Notes(asyncio.Transport):
    """Notes what is done to it."""

    def __init__(self):
        super().__init__()
        self.done, self.closing = [], False

    def write(self, content):
        self.done.append(content)

    def write_eof(self):
        self.done.append("end")

    def resume_reading(self):
        self.done.append("read on")

    def is_closing(self):
        return self.closing

    def close(self):
        self.closing = True
        self.done.append("close")


async def test_a_connection_on_which_nothing_is_sent_is_closed_at_once():
    """There is nothing to lose."""
    notes = Notes()
    Transport(notes, lambda: False).close()

    assert ["close"] == notes.done


async def test_a_connection_on_which_something_is_sent_is_read_for_a_while():
    """What is written ends first, so that the caller can read it; to the service it is closed already."""
    notes = Notes()
    transport = Transport(notes, lambda: True)
    transport.close()
    transport.close()

    assert ["end", "read on"] == notes.done
    assert transport.is_closing()


class Reading:
    """A connection whose caller reads now and then, on a clock of its own."""

    def __init__(self, window_s=30.0):
        self.now = self.unread = 0
        self.dropped, self.timers = False, []
        loop = SimpleNamespace(time=lambda: self.now, call_at=self.call_at)
        server = SimpleNamespace(body_timeout_s=window_s)
        service = SimpleNamespace(settings=SimpleNamespace(server=server))
        config = Config(print, log_config=None, ws="none")
        self.protocol = Protocol(config, ServerState(), {}, loop, service=service, max_connections=1)
        self.protocol.flow = SimpleNamespace(pause_writing=lambda: None, resume_writing=lambda: None)
        self.protocol._wire = SimpleNamespace(unread=lambda: self.unread, drop=self.drop)

    def call_at(self, when, *call):
        timer = SimpleNamespace(when=when, call=call, cancelled=False)
        timer.cancel = lambda: setattr(timer, "cancelled", True)
        self.timers.append(timer)
        return timer

    def drop(self):
        self.dropped = True

    def idle(self, seconds):
        """Let time pass in which nothing waits to be read."""
        self.now += seconds

    def line(self, size, read_after_s):
        """Write a line, which the caller reads so much later."""
        self.unread = size
        self.protocol.pause_writing()
        until = self.now + read_after_s
        while (timer := self.timers[-1]).when < until and not (timer.cancelled or self.dropped):
            self.now = timer.when
            timer.call[0](*timer.call[1:])
        if not self.dropped:
            self.now, self.unread = until, 0
            self.protocol.resume_writing()


async def test_the_pauses_of_a_connection_count_together():
    """A stream has one for each line: who reads each just in time is as slow as who reads none."""
    reading = Reading()
    reading.line(20_000, read_after_s=29)
    assert not reading.dropped
    reading.line(20_000, read_after_s=29)

    assert reading.dropped
    assert 30 == reading.now == reading.timers[-1].when


async def test_who_reads_at_the_pace_may_read_for_any_time():
    """And the time in which nothing waits to be read does not count."""
    reading = Reading()
    for _ in range(20):
        reading.line(40 * MIN_BYTES_PER_S, read_after_s=29)
        reading.idle(100)

    assert not reading.dropped
