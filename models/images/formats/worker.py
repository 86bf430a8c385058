"""The main function of the decoder's process: files from standard input, pixels to standard output."""

import resource
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import PIL.AvifImagePlugin
import PIL.Image

from models.images.formats.contract import ImageError
from models.images.formats.film import decoder, strip
from models.images.formats.pillow import rgb
from models.images.formats.registry import read_film, read_header

FILE = struct.Struct("<Q?")  # bytes of the file that follows, and True for all its frames
SIZE = struct.Struct("<II")  # width and height of the pixels that follow; 0 x 0 for a broken picture

# Besides the pixels: code tables, and copies of the file.
SLACK_BYTES, FILES = 16 * 2**20, 2

# CPU time: four times that of the slowest decoder on a slow core.
FIXED_S, PIXEL_S, BYTE_S = 0.5, 100e-9, 200e-9

STATM = Path("/proc/self/statm")  # Linux; elsewhere memory has no bound


def main() -> None:
    """Decode until the server closes the pipe."""
    PIL.AvifImagePlugin.DEFAULT_MAX_THREADS = 1  # each thread takes memory of its own, and a core
    PIL.Image.init()  # plugins are loaded before memory is bounded
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while request := source.read(FILE.size):
        length, all_frames = FILE.unpack(request)
        sink.write(answer(source.read(length), all_frames))
        sink.flush()


def answer(encoded: bytes, all_frames: bool) -> bytes:
    """Decode a picture file; return its size and its pixels."""
    header = read_film(encoded) if all_frames else read_header(encoded)
    memory = header.memory + SLACK_BYTES + FILES * len(encoded)
    pixels = header.width * header.height * max(1, header.frames)
    seconds = FIXED_S + PIXEL_S * pixels + BYTE_S * len(encoded)
    frames = decoder(header.format)  # loaded before memory is bounded
    try:
        with bounded(memory, seconds):
            picture = strip(encoded, header, frames) if all_frames else rgb(encoded, header)
    except ImageError:
        return SIZE.pack(0, 0)
    return SIZE.pack(*picture.size) + picture.tobytes()


@contextmanager
def bounded(memory: int, seconds: float) -> Iterator[None]:
    """
    Limit the process to *memory* more bytes; kill it after *seconds* of CPU time.

    Decoders treat a failed allocation as an error of the picture.
    """
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if STATM.exists():
        now = int(STATM.read_text("ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + memory, most))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
