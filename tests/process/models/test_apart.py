"""Decoding in a process of its own: its bounds, and what happens when it reaches them."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import PIL.Image
import pytest

from models.images.formats import decode as apart
from models.images.formats.contract import DecoderKilled, ImageError
from models.images.formats.decode import decode
from models.images.frame_stack import FrameStack
from models.images.grid import Grid
from models.images.image import Image
from tests.support.bombs import flat, lying_avif
from tests.support.films import film

BOUNDED = "from models.images.formats.worker import bounded\nwith bounded({memory}, {seconds}):\n    {work}"


def run(work: str, memory: int = 2**30, seconds: float = 60) -> "subprocess.CompletedProcess[str]":
    """Python that does *work* within bounds."""
    code = BOUNDED.format(memory=memory, seconds=seconds, work=work)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def pid() -> int:
    """Of the process that decodes for this thread."""
    assert apart.own.process
    return apart.own.process._process.pid


def test_a_decoder_that_does_not_end_is_ended():
    """By its CPU time, which a busy machine does not shorten."""
    assert 0 == run("sum(range(1000))").returncode
    assert run("while True: pass", seconds=0.05).returncode < 0


def test_a_decoder_that_takes_more_memory_does_not_get_it():
    """What it has already is not counted."""
    assert 0 == run(f"bytes({64 * 2**20})", memory=96 * 2**20).returncode
    assert "MemoryError" in run(f"bytes({64 * 2**20})", memory=32 * 2**20).stderr


def test_pictures_of_one_thread_share_a_process():
    """One that is refused for its memory costs no new process."""
    with ThreadPoolExecutor(1) as thread:  # whose process has no memory left from other pictures
        thread.submit(decode, flat(8, 8, "AVIF")).result()
        first = thread.submit(pid).result()
        with pytest.raises(ImageError, match="AVIF"):
            thread.submit(decode, lying_avif(3000, 3000, (16, 16))).result()
        thread.submit(decode, flat(8, 8, "AVIF")).result()

        assert first == thread.submit(pid).result()


def test_a_process_that_was_ended_is_replaced():
    """The picture that it was ended for is refused, and no other one."""
    decode(flat(8, 8, "AVIF"))
    first = apart.own.process
    assert first
    first._process.kill()
    first._process.wait()

    assert (8, 8) == decode(flat(8, 8, "AVIF")).size
    assert first is not apart.own.process


def test_a_picture_whose_pixels_find_no_memory_leaves_nothing_in_the_pipe(monkeypatch):
    """The next one has its own pixels, not the rest of this one's."""
    red, blue = (film("GIF", colours) for colours in (("red", "lime"), ("blue", "white")))
    with monkeypatch.context() as patched:
        patched.setattr(PIL.Image, "frombytes", out_of_memory)
        with pytest.raises(MemoryError):
            FrameStack(red).frame(0).rgb.load()

    assert (0, 0, 255) == FrameStack(blue).frame(0).rgb.getpixel((0, 0))


def out_of_memory(*args):
    raise MemoryError


READS = "import os, signal, sys; sys.stdin.buffer.read(9)"
WRITES_IN_PART = f"{READS}; sys.stdout.buffer.write(bytes([8, 0, 0, 0] * 2 + [7] * 10))"
IS_KILLED = f"{READS}; os.kill(os.getpid(), signal.SIGKILL)"  # as the kernel does for lack of memory
TAKES_TOO_LONG = f"{READS}; os.kill(os.getpid(), signal.SIGPROF)"  # as the limit of CPU time does


@contextmanager
def thread_of(*codes: str) -> Iterator[ThreadPoolExecutor]:
    """A thread whose first processes run these codes, and later ones the decoder's."""
    left = [*codes]

    def begin() -> None:
        apart.own.start = lambda: apart.DecoderProcess(left.pop(0) if left else apart.WORKER_CODE)

    with ThreadPoolExecutor(1, initializer=begin) as thread:
        yield thread


@pytest.mark.parametrize("code", [READS, WRITES_IN_PART], ids=["reads", "writes in part"])
def test_a_process_that_ends_over_a_picture_refuses_it(code):
    """Whatever has ended it, and though some pixels came; the next picture is decoded."""
    with thread_of(code, code) as thread:
        with pytest.raises(ImageError, match="more memory or time"):
            thread.submit(decode, flat(8, 8, "AVIF")).result()

        assert (8, 8) == thread.submit(decode, flat(8, 8, "AVIF")).result().size


def test_a_process_ends_with_its_thread():
    """Nothing is left behind when the service stops."""

    def decoded() -> "subprocess.Popen[bytes]":
        decode(flat(8, 8, "AVIF"))
        assert apart.own.process
        return apart.own.process._process

    with ThreadPoolExecutor(1) as thread:
        process = thread.submit(decoded).result()

    assert process.poll() is not None


def test_a_picture_whose_process_is_killed_is_decoded_by_a_new_one():
    """The picture is not at fault."""
    with thread_of(IS_KILLED) as thread:
        assert (8, 8) == thread.submit(decode, flat(8, 8, "AVIF")).result().size


def test_a_picture_whose_processes_are_killed_twice_may_be_decoded_later():
    """A temporary error, also where it is one of a grid, and the picture itself is not marked as broken."""
    image = Image(flat(8, 8, "AVIF"))
    with thread_of(IS_KILLED, IS_KILLED) as thread:
        with pytest.raises(DecoderKilled, match="killed twice"):
            thread.submit(lambda: image.rgb).result()
        assert (8, 8) == thread.submit(lambda: image.rgb).result().size

    grid = Grid([Image(flat(8, 8, "AVIF"))], ["frame 0"])
    with thread_of(IS_KILLED, IS_KILLED) as thread, pytest.raises(DecoderKilled, match="frame 0"):
        thread.submit(lambda: grid.rgb).result()


def test_a_picture_that_takes_too_long_is_not_tried_again():
    """Its process ends by the limit of CPU time: the picture is at fault, and no new process is started."""
    with thread_of(TAKES_TOO_LONG, IS_KILLED, IS_KILLED) as thread:
        with pytest.raises(ImageError, match="more memory or time"):
            thread.submit(decode, flat(8, 8, "AVIF")).result()
        with pytest.raises(DecoderKilled, match="killed twice"):  # by the two that are left
            thread.submit(decode, flat(8, 8, "AVIF")).result()
