"""Animations and videos of plain colours, and files that claim more than they hold."""

import io
import struct
from collections.abc import Sequence
from typing import Any

import PIL.Image
import pytest

from models.images.formats.contract import Header
from tests.support.pictures import saved

COLOURS = ("red", "lime", "blue", "yellow", "black", "white")


def plain(colour: str, size: tuple[int, int] = (16, 16)) -> PIL.Image.Image:
    return PIL.Image.new("RGB", size, colour)


def film(
    format: str = "GIF",
    colours: Sequence[str] = COLOURS[:3],
    size: tuple[int, int] = (16, 16),
    **options: Any,
) -> bytes:
    """An animation of a frame in each colour."""
    frames = [plain(colour, size) for colour in colours]
    lossless = {"lossless": True} if format == "WEBP" else {}
    return saved(frames[0], format, save_all=True, append_images=frames[1:], **lossless, **options)


def many_frames(frames: int, frame: tuple[int, int] = (1, 1)) -> bytes:
    """A GIF of so many frames of a few bytes each; only the first says that it is large."""
    head = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + b"\1\1\1\xff\xff\xff"
    data = b"\2\2D\1\0"
    one = struct.pack("<BHHHHB", 0x2C, 0, 0, 1, 1, 0) + data
    return head + one * (frames - 1) + struct.pack("<BHHHHB", 0x2C, 0, 0, *frame, 0) + data + b";"


def mp4(
    colours: Sequence[str] = COLOURS[:3], size: tuple[int, int] = (64, 48), codec: str = "mpeg4", fps: int = 8
) -> bytes:
    """A video of a frame in each colour, as PyAV writes it."""
    import av  # an extra

    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        stream = container.add_stream(codec, rate=fps)
        stream.width, stream.height = size
        for colour in colours:
            container.mux(stream.encode(av.VideoFrame.from_image(plain(colour, size))))
        container.mux(stream.encode(None))
    return buffer.getvalue()


def box(kind: bytes, *contents: bytes) -> bytes:
    """One box of an MP4 file."""
    content = b"".join(contents)
    return struct.pack(">I4s", 8 + len(content), kind) + content


def declared_mp4(width: int, height: int, frames: int, fps: int = 24, last: int | None = None) -> bytes:
    """An MP4 that says how large it is and how many frames it has, and holds none; *last* lasts so long."""
    runs = [(frames, 1)] if last is None else [(frames - 1, 1)] * (frames > 1) + [(1, last)]
    entry = box(b"avc1", bytes(24), struct.pack(">HH", width, height), bytes(50))
    tables = box(
        b"stbl",
        box(b"stsd", struct.pack(">II", 0, 1), entry),
        box(b"stts", struct.pack(">II", 0, len(runs)), *(struct.pack(">II", *run) for run in runs)),
        box(b"stsz", struct.pack(">III", 0, 0, frames)),
    )
    handler = box(b"hdlr", bytes(8), b"vide", bytes(12))
    head = box(b"mdhd", struct.pack(">IIIIII", 0, 0, 0, fps, frames, 0))
    track = box(b"trak", box(b"mdia", head, handler, box(b"minf", tables)))
    return box(b"ftyp", b"isom", bytes(4)) + box(b"moov", track)


@pytest.fixture
def decoded_films(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The numbers of the frames that were decoded of each film, by no process: they have their colours."""
    numbers: list[list[int]] = []

    def decode(encoded: bytes, header: Header) -> list[PIL.Image.Image]:
        numbers.append([*header.kept])
        size = header.width, header.height
        return [PIL.Image.new("RGB", size, COLOURS[number % len(COLOURS)]) for number in header.kept]

    monkeypatch.setattr("models.images.frame_stack.decode_film", decode)
    return numbers
