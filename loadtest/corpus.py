"""
Pictures in the usual sizes and formats, kept in `build/`, and their prompts and questions; deterministic.

Smooth noise under a few shapes: its JPEGs are about as large as those of generated pictures (a 512² one at
quality 75 has some 40 kB); flat colours would be smaller.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageDraw

FOLDER = Path(__file__).parents[1] / "build" / "corpus"
EACH = 8  # pictures of a kind
COLOURS = ("red", "green", "blue", "yellow", "purple", "orange", "black", "white")
SHAPES = ("circle", "square", "triangle", "star", "diamond", "cross", "heart", "ring")
RELATIONS = ("left of", "right of", "above", "below")
# Eight questions about a picture, for the service and for the loops that it is compared with.
TEXTS = [f"Is there a {colour} {shape}?" for colour in COLOURS[:4] for shape in ("circle", "square")]
QUESTIONS = [f"{text} Please answer yes or no." for text in TEXTS]  # dsg's template
QUESTION_SET = [
    {"id": n, "kind": "entity", "text": text, "depends_on": []} for n, text in enumerate(TEXTS, 1)
]


@dataclass(frozen=True, slots=True)
class Kind:
    """A size with a format."""

    side: int
    format: str
    quality: int | None = None


KINDS = {
    "tiny": Kind(32, "PNG"),  # workloads that do not test pictures use it
    "rl": Kind(512, "JPEG", 75),
    "rl-fine": Kind(512, "JPEG", 95),
    "rl-png": Kind(512, "PNG"),
    "jpeg": Kind(1024, "JPEG", 85),
    "webp": Kind(1024, "WEBP", 85),
    "png": Kind(1024, "PNG"),
}


def image_files(name: str, folder: Path = FOLDER) -> list[bytes]:
    """Return the files of one kind, drawn on first use."""
    kind = KINDS[name]
    found = []
    for number in range(EACH):
        path = folder / f"{name}-{number}.{kind.format.lower()}"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode(draw(kind.side, seed=number), kind))
        found.append(path.read_bytes())
    return found


def draw(side: int, seed: int) -> PIL.Image.Image:
    """Draw noise of four octaves, and three shapes on it."""
    chance = np.random.default_rng(seed)
    field = np.zeros((side, side, 3))
    for cells, weight in ((4, 90), (16, 40), (64, 30), (side // 2, 35)):
        coarse = PIL.Image.fromarray(chance.integers(0, 256, (cells, cells, 3), np.uint8))
        field += weight * (np.asarray(coarse.resize((side, side), PIL.Image.Resampling.BICUBIC)) / 255 - 0.5)
    image = PIL.Image.fromarray(np.clip(128 + field, 0, 255).astype(np.uint8))
    pencil = PIL.ImageDraw.Draw(image)
    for _ in range(3):
        x, y, radius = chance.uniform((0.2, 0.2, 0.05), (0.8, 0.8, 0.15)) * side
        pencil.ellipse((x - radius, y - radius, x + radius, y + radius), str(chance.choice(COLOURS)))
    return image


def encode(image: PIL.Image.Image, kind: Kind) -> bytes:
    """Return the picture as a file's bytes."""
    options: dict[str, Any] = {} if kind.quality is None else {"quality": kind.quality}
    buffer = io.BytesIO()
    image.save(buffer, kind.format, **options)
    return buffer.getvalue()


def distinct(name: str, random: Random, folder: Path = FOLDER) -> Iterator[bytes]:
    """Yield endless pictures of one kind, each with its own digest by bytes appended after the image."""
    files = image_files(name, folder)
    while True:
        yield random.choice(files) + random.randbytes(16)


def prompts(random: Random) -> Iterator[str]:
    """Yield endless prompts in the demo models' language; a few thousand differ."""
    while True:
        one, other = (f"{random.choice(COLOURS)} {random.choice(SHAPES)}" for _ in range(2))
        yield f"{article(one)} {random.choice(RELATIONS)} {article(other)}"


def article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
