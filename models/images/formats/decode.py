"""
Decoding of picture files to RGB, in this process or in a separate one.

The separate process has kernel limits on memory and CPU time, see `worker`.
"""

import signal
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import PIL.Image

from models.images.formats.contract import DecoderKilled, Header, ImageError
from models.images.formats.pillow import TRANSPARENT_KEY, rgb
from models.images.formats.registry import plain, read_header

# Bytes of the file, how many numbers of frames follow, none for a still picture, and `Header.most` of them.
FILE_HEAD = struct.Struct("<QIQ")
FRAME_NUMBER = struct.Struct("<I")
# Width and height of the pixels that follow, 0 x 0 for a broken picture; whether the file is transparent.
PIXELS_HEAD = struct.Struct("<II?")

ROOT = Path(__file__).parents[3]
# They come from outside, as the kernel's for lack of memory; a decoder that crashes ends by others.
KILL_STATUSES = {-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP}
EXIT_TIMEOUT_S = 10  # a process whose pipe is closed has its exit status by then
WORKER_CODE = (
    "import sys; sys.path.insert(0, sys.argv[1]); from models.images.formats.worker import main; main()"
)


def decode(encoded: bytes, header: Header | None = None) -> PIL.Image.Image:
    """
    Decode the first frame to RGB, see `rgb`, within the memory of the header.  Raises `ImageError`.

    Args:
        header: of the file, if it has been read already; width and height may be swapped.
    """
    header = header or read_header(encoded)
    if not header.apart:
        return rgb(plain(encoded), header)
    [image] = decode_apart(encoded, header.format)
    return image


def decode_film(encoded: bytes, header: Header) -> list[PIL.Image.Image]:
    """
    Decode the frames of an animation that its header keeps to RGB, in one pass.  Raises `ImageError`.

    Always in a separate process, since frames build on each other and few decoders are hardened for that.
    """
    return decode_apart(encoded, header.format, header.kept, header.most) if header.kept else []


def decode_apart(
    encoded: bytes, format: str, kept: Sequence[int] = (), most: int = 0
) -> list[PIL.Image.Image]:
    """
    Decode a picture file to RGB, or the frames of an animation with these numbers, of *most* pixels each.

    If the process ends meanwhile, a new process decodes the picture once more: the old process may have been
    killed, or damaged by an earlier picture.

    Raises:
        ImageError: the picture is broken, or exceeds the limits for its size.
        DecoderKilled: both processes were killed.
    """
    status = 0
    for _ in range(2):
        try:
            if own.process is None or own.process.ended:
                own.process = own.start()
            return [*own.process.decode(encoded, kept, most)]
        except ImageError:
            break
        except (OSError, EOFError):
            status, own.process = ending(own.process), None
            if status == -signal.SIGPROF:  # the limit of its CPU time
                break
        except BaseException:  # pixels in the pipe must not become another picture's
            own.process = None
            raise
    if status in KILL_STATUSES:
        raise DecoderKilled(f"the process that decodes the {format} image was killed twice; try again later")
    raise ImageError(f"the {format} image is broken, or takes more memory or time than one of its size")


class DecoderProcess:
    """
    The decoder process of one thread.  It ends when the thread or this process ends.

    Args:
        code: what it runs.
    """

    def __init__(self, code: str = WORKER_CODE) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, str(ROOT)],
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

    def wait(self) -> int:
        """Wait for the process, which has closed its pipe, and return its exit status; 0 if it goes on."""
        try:
            return self._process.wait(EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return 0

    def decode(self, encoded: bytes, kept: Sequence[int], most: int) -> Iterator[PIL.Image.Image]:
        """
        Yield the picture, or each frame that is kept.

        Raises `ImageError` if one is broken, and `OSError` or `EOFError` if the process was killed.
        """
        source, sink = self._process.stdin, self._process.stdout
        assert source is not None
        assert sink is not None
        source.write(FILE_HEAD.pack(len(encoded), len(kept), most) + b"".join(map(FRAME_NUMBER.pack, kept)))
        source.write(encoded)
        source.flush()
        for _ in kept or range(1):
            width, height, transparent = PIXELS_HEAD.unpack(exactly(sink, PIXELS_HEAD.size))
            if not width:
                raise ImageError
            image = PIL.Image.frombytes("RGB", (width, height), exactly(sink, 3 * width * height))
            image.info[TRANSPARENT_KEY] = transparent
            yield image


def ending(process: DecoderProcess | None) -> int:
    """Return the exit status of a process that ended; a process that did not start counts as killed."""
    return -signal.SIGKILL if process is None else process.wait()


def exactly(pipe: IO[bytes], count: int) -> bytes:
    """Read *count* bytes.  Raises `EOFError` if there are fewer."""
    read = pipe.read(count)
    if len(read) < count:
        raise EOFError
    return read


class Own(threading.local):
    """
    The process of each thread, which inherits the thread's priority.

    Attributes:
        start: starts one.
    """

    process: DecoderProcess | None = None
    start: Callable[[], DecoderProcess] = DecoderProcess


own = Own()


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process."""
    process.kill()
    process.communicate()
