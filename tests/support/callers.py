"""Callers as they come: requests of all shapes, drawn with seeded dice, and callers who leave."""

import asyncio
import json
from random import Random
from typing import Any

import PIL.Image

from demo.process import HOST
from tests.support.pictures import b64, saved

COLOURS = ("red", "green", "blue", "white")
SHAPES = ("circle", "square", "star", "ring", "heart")
PROMPTS = [f"a {colour} {shape}" for colour in COLOURS for shape in SHAPES]
PICTURES = [
    b64(saved(PIL.Image.effect_noise((side, side), 50 + side % 7).convert("RGB"), format))
    for side, format in ((16, "PNG"), (32, "WEBP"), (64, "JPEG"), (128, "JPEG"))
]
METRICS = (["vqascore"], ["clipscore"], ["vqascore", "clipscore"], ["dsg"])
LONGEST_PATIENCE_S = 0.3
AT_ONCE = 32


def draw(dice: Random, *faults: str) -> dict[str, Any]:
    """A request of one to eight items, some slow and some with one of *faults*; a quarter are bulk."""
    items = []
    for _ in range(dice.choice((1, 1, 1, 2, 8))):
        words = [dice.choice(PROMPTS)]
        if dice.random() < 0.4:
            words.append(dice.choice(("slow", *faults)))
        if dice.random() < 0.3:
            words.append(str(dice.random()))  # or else somebody else asks the same
        items.append({"prompt": " ".join(words), "image": dice.choice(PICTURES)})
    priority = "bulk" if dice.random() < 0.25 else "interactive"
    return {"items": items, "metrics": dice.choice(METRICS), "priority": priority}


async def leave(port: int, dice: Random, *faults: str) -> None:
    """Send a request, or some of it, and hang up after a while, whatever has come back."""
    asked = draw(dice, *faults)
    if dice.random() < 0.2:
        asked["timeout_ms"] = dice.randrange(10, 300)
    body = json.dumps(asked).encode()
    head = "POST /score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    sent = len(request) if dice.random() < 0.8 else dice.randrange(len(request))
    patience, politely = dice.random() * LONGEST_PATIENCE_S, dice.random() < 0.5
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(request[:sent])
        async with asyncio.timeout(patience):
            await writer.drain()
            await reader.read()
    except TimeoutError:
        pass
    finally:
        if politely:
            writer.close()
        else:
            writer.transport.abort()


async def leave_often(port: int, times: int, seed: int, *faults: str) -> None:
    """That many callers who leave, some at once; the same ones for the same *seed*."""
    numbers = iter(range(times))

    async def callers() -> None:
        for number in numbers:
            await leave(port, Random(f"{seed} {number}"), *faults)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(callers())
