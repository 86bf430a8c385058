"""Decoding in a separate process, with kernel limits on memory and CPU time."""

import subprocess
import sys
import threading
import weakref
from pathlib import Path

import PIL.Image

from models.images.formats.contract import ImageError
from models.images.formats.worker import FILE, SIZE

ROOT = Path(__file__).parents[3]
START = "import sys; sys.path.insert(0, sys.argv[1]); from models.images.formats.worker import main; main()"


def decode_apart(encoded: bytes, format: str, all_frames: bool = False) -> PIL.Image.Image:
    """
    Decode a picture file to RGB; with *all_frames* an animation, one frame below the other.

    Raises:
        ImageError: the picture is broken, or exceeds the limits for its size.
    """
    if own.process is None or own.process.ended:
        own.process = DecoderProcess()
    width, height, pixels = 0, 0, b""
    try:
        width, height, pixels = own.process.decode(encoded, all_frames)
        if len(pixels) < 3 * width * height:
            raise EOFError
    except (OSError, EOFError):  # killed by the kernel
        own.process, width = None, 0
    if not width:
        raise ImageError(f"the {format} image is broken, or takes more memory or time than one of its size")
    return PIL.Image.frombytes("RGB", (width, height), pixels)


class DecoderProcess:
    """The process of one thread.  It ends with the thread, or with this process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, str(ROOT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # libtiff writes there
            start_new_session=True,  # no SIGINT from the keyboard
        )
        weakref.finalize(self, stop, self._process)

    @property
    def ended(self) -> bool:
        """True if the process was killed."""
        return self._process.poll() is not None

    def decode(self, encoded: bytes, all_frames: bool) -> tuple[int, int, bytes]:
        """
        Return width, height and RGB values; 0 x 0 for a broken picture.  Raises `OSError` or `EOFError`.
        """
        source, sink = self._process.stdin, self._process.stdout
        assert source is not None
        assert sink is not None
        source.write(FILE.pack(len(encoded), all_frames))
        source.write(encoded)
        source.flush()
        size = sink.read(SIZE.size)
        if len(size) < SIZE.size:
            raise EOFError
        width, height = SIZE.unpack(size)
        return width, height, sink.read(3 * width * height)


class Own(threading.local):
    """The process of each thread, which inherits the thread's priority."""

    process: DecoderProcess | None = None


own = Own()


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process."""
    process.kill()
    process.communicate()
