"""Requests with large pictures, which wait for their model."""

import asyncio
import base64
from contextlib import asynccontextmanager

from tests.support.pictures import item, png

MB = 2**20


def padded(size: int) -> bytes:
    """A small picture in a file of so many bytes."""
    return png() + bytes(size)


def request(size: int) -> dict:
    return {"items": [item("a", base64.b64encode(padded(size)).decode())], "metrics": ["vqascore"]}


def form(size: int) -> dict:
    """The same as a form, whose file is no text."""
    part = '{"items": [{"prompt": "a", "image": {"part": "p"}}], "metrics": ["vqascore"]}'
    return {"request": (None, part), "p": ("p", padded(size))}


@asynccontextmanager
async def waiting(client, fakes, made):
    """A request that waits for its model while this is open."""
    fakes["vqa"].hold.clear()
    task = asyncio.create_task(client.send(made))
    try:
        while not fakes["vqa"].held:
            await asyncio.sleep(0.001)
        yield task
    finally:
        fakes["vqa"].hold.set()
        await task


def built(client, **sent):
    """A request whose body is written already."""
    made = client.build_request("POST", "/score", **sent)
    made.read()
    return made
