"""What the client does for a line of a stream that comes in many pieces."""

import time

import httpx2 as httpx

from scoregate import Client, Item, ScoregateError
from tests.support.pictures import png

PIECE = b"a" * 1024


def seconds(pieces):
    """Return the CPU time of reading one line of so many pieces, which is no JSON."""

    async def line():
        for _ in range(pieces):
            yield PIECE
        yield b"\n"

    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=line()))
    with Client("http://test", transport=transport, retries=0) as client:
        began = time.process_time()
        try:
            list(client.stream([Item(prompt="a dog", image=png())]))
        except ScoregateError:
            return time.process_time() - began
    raise AssertionError("the line was read as a result")


def test_a_line_costs_in_proportion_to_its_length():
    """Its bytes are not copied again with each piece: one of 8 MB costs some 8 times one of 1 MB."""
    short = min(seconds(1024) for _ in range(3))

    assert seconds(8 * 1024) < 24 * short
