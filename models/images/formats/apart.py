"""Decoding in a process of its own, whose memory and CPU time the kernel bounds."""

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
    The RGB pixels of a picture file; with *all_frames* those of an animation, one frame below the other.

    Raises:
        ImageError: the picture is broken, or takes more memory or time than one of its size may.
    """
    if own.process is None or own.process.ended:
        own.process = DecoderProcess()
    width, height, pixels = 0, 0, b""
    try:
        width, height, pixels = own.process.decode(encoded, all_frames)
        if len(pixels) < 3 * width * height:
            raise EOFError
    except (OSError, EOFError):  # the kernel has ended it, perhaps while it wrote
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
            start_new_session=True,  # an interrupt from the keyboard is the server's
        )
        weakref.finalize(self, stop, self._process)

    @property
    def ended(self) -> bool:
        """Whether somebody has ended it."""
        return self._process.poll() is not None

    def decode(self, encoded: bytes, all_frames: bool) -> tuple[int, int, bytes]:
        """Width, height and RGB values; 0 x 0 for a broken picture.  Raises `OSError` or `EOFError`."""
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
    """A thread's own process, which has the thread's priority."""

    process: DecoderProcess | None = None


own = Own()


def stop(process: "subprocess.Popen[bytes]") -> None:
    """End it, whatever it does."""
    process.kill()
    process.communicate()
