"""Decoding in a separate process, with kernel limits on memory and CPU time."""

import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import PIL.Image

from models.images.formats.contract import ImageError
from models.images.formats.worker import FILE, NUMBER, SIZE

ROOT = Path(__file__).parents[3]
START = "import sys; sys.path.insert(0, sys.argv[1]); from models.images.formats.worker import main; main()"


def decode_apart(encoded: bytes, format: str, kept: Sequence[int] = ()) -> list[PIL.Image.Image]:
    """
    Decode a picture file to RGB, or the frames of an animation with these numbers.

    Raises:
        ImageError: the picture is broken, or exceeds the limits for its size.
    """
    if own.process is None or own.process.ended:
        own.process = DecoderProcess()
    try:
        return [*own.process.decode(encoded, kept)]
    except ImageError:
        pass
    except (OSError, EOFError):  # killed by the kernel
        own.process = None
    except BaseException:  # with pixels left in the pipe, which must not become another picture's
        own.process = None
        raise
    raise ImageError(f"the {format} image is broken, or takes more memory or time than one of its size")


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

    def decode(self, encoded: bytes, kept: Sequence[int]) -> Iterator[PIL.Image.Image]:
        """
        Yield the picture, or each frame that is kept.

        Raises `ImageError` if one is broken, and `OSError` or `EOFError` if the process was killed.
        """
        source, sink = self._process.stdin, self._process.stdout
        assert source is not None
        assert sink is not None
        source.write(FILE.pack(len(encoded), len(kept)) + b"".join(map(NUMBER.pack, kept)))
        source.write(encoded)
        source.flush()
        for _ in kept or range(1):
            width, height = SIZE.unpack(exactly(sink, SIZE.size))
            if not width:
                raise ImageError
            yield PIL.Image.frombytes("RGB", (width, height), exactly(sink, 3 * width * height))


def exactly(pipe: IO[bytes], count: int) -> bytes:
    """Read so many bytes.  Raises `EOFError`."""
    read = pipe.read(count)
    if len(read) < count:
        raise EOFError
    return read


class Own(threading.local):
    """The process of each thread, which inherits the thread's priority."""

    process: DecoderProcess | None = None


own = Own()


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process."""
    process.kill()
    process.communicate()
