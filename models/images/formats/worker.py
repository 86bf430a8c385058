"""The main function of the decoder's process: files from standard input, pixels to standard output."""

import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import PIL.AvifImagePlugin
import PIL.Image

from models.images.formats.contract import Header, ImageError
from models.images.formats.decode import FILE_HEAD, FRAME_NUMBER, PIXELS_HEAD
from models.images.formats.mp4 import MP4
from models.images.formats.pillow import TRANSPARENT_KEY, decoder, kept_frames, rgb
from models.images.formats.registry import read_film, read_header

# Code tables and copies of the file take memory, too.
SLACK_BYTES, FILE_COPIES = 16 * 2**20, 2

# CPU time: four times that of the slowest decoder on a slow core.
FIXED_S, PIXEL_S, BYTE_S = 0.5, 100e-9, 200e-9
PASSED_PIXEL_S = 30e-9  # a video's frame that is passed over is not converted to RGB

STATM = Path("/proc/self/statm")  # Linux; elsewhere memory has no bound


def main() -> None:
    """Decode until the server closes the pipe."""
    PIL.AvifImagePlugin.DEFAULT_MAX_THREADS = 1  # each thread takes memory of its own, and a core
    PIL.Image.init()  # plugins are loaded before memory is bounded
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while request := source.read(FILE_HEAD.size):
        length, count, most = FILE_HEAD.unpack(request)
        kept = [number for [number] in FRAME_NUMBER.iter_unpack(source.read(count * FRAME_NUMBER.size))]
        for part in answer(source.read(length), kept, most):
            sink.write(part)
        sink.flush()


def answer(encoded: bytes, kept: Sequence[int], most: int) -> Iterator[bytes]:
    """Decode a picture file, or frames of it; yield the `PIXELS_HEAD` of each, and its pixels."""
    header = read_film(encoded).keeping(kept, most) if kept else read_header(encoded)
    frames = decoder(header.format)  # loaded before memory is bounded
    try:
        with bounded(header.memory + SLACK_BYTES + FILE_COPIES * len(encoded), seconds(header, len(encoded))):
            for image in kept_frames(encoded, header, frames) if kept else [rgb(encoded, header)]:
                yield PIXELS_HEAD.pack(*image.size, image.info[TRANSPARENT_KEY])
                yield image.tobytes()
    except ImageError:
        yield PIXELS_HEAD.pack(0, 0, False)


def seconds(header: Header, size: int) -> float:
    """Return the CPU time for a file of that header and *size* in bytes."""
    passed_pixel_s = PASSED_PIXEL_S if header.format == MP4.name else PIXEL_S
    frame_s = PIXEL_S * max(1, len(header.kept))
    if header.kept:
        frame_s += passed_pixel_s * (header.kept[-1] + 1)
    return FIXED_S + frame_s * header.width * header.height + BYTE_S * size


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
