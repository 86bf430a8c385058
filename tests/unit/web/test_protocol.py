"""What is read from a connection, and how one ends."""

import asyncio

import h11
import pytest

from service.web.server.protocol import CHUNK_BYTES, SMALL_CHUNKS, Reader, Transport
from tests.support.raw import chunked, head

pytestmark = pytest.mark.anyio


def read(body):
    """The events of a request with a body in chunks."""
    reader = Reader(h11.SERVER)
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
