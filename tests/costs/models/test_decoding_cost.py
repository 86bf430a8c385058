"""
What decoding costs: memory that was counted, and CPU time as for an honest picture of that size.

Measured in a process of its own, where each case runs in a fork with a process that decodes apart: the
peak of resident memory can only be told once.
"""

import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

import models.images.formats.decode
from models.images.formats.contract import ImageError
from models.images.formats.decode import decode
from models.images.formats.registry import read_header
from service.core.settings.sections import Images
from tests.support import bombs
from tests.support.bombs import flat, segment, with_chunks, with_segments
from tests.support.pictures import saved

MB = 2**20
SLACK_MB = 16  # beside what was counted: tables, and what an allocator keeps
FILES = 2  # and copies of the file
LIMIT = 10  # times the yardstick: an honest picture of that size, and hashing the file and a megabyte
SAFETY_NET = 4096 * MB
CONTROL = 4000  # width and height of the picture that shows what the measure sees

Make = Callable[[], bytes]


def noise(side: int, mode: str = "RGB") -> PIL.Image.Image:
    """A picture that compresses badly."""
    pixels = np.random.default_rng(3).integers(0, 256, (side // 4, side // 4), np.uint8)
    grey = PIL.Image.fromarray(pixels).resize((side, side))
    return PIL.Image.merge(mode, [grey.rotate(90 * band) for band in range(len(mode))])


def jpeg(side: int = 16, **options) -> bytes:
    return flat(side, side, "JPEG", **options)


def png() -> bytes:
    return flat(16, 16, "PNG")


def honest(format: str, side: int = 16, **options) -> Make:
    return lambda: flat(side, side, format, **options)


# Each attack, and an honest picture of the size that it says.
ATTACKS: dict[str, tuple[Make, Make]] = {
    "a GIF whose frame is 8,000 x 8,000": (lambda: bombs.gif((8000, 8000)), honest("GIF")),
    "a GIF whose frame is 20,000 x 20,000": (lambda: bombs.gif((20_000, 20_000)), honest("GIF")),
    "a GIF whose frame is 65,535 x 65,535": (lambda: bombs.gif((65_535, 65_535)), honest("GIF")),
    "a GIF that goes back to 65,535 x 65,535": (lambda: bombs.gif((65_535,) * 2, disposal=3), honest("GIF")),
    "a GIF within the limits": (lambda: bombs.gif((4000, 4000)), honest("GIF", 4000, mode="P")),
    "a BMP of runs": (lambda: bombs.run_length_bmp(7000, 7000), honest("BMP")),
    "a BMP that is its header": (lambda: flat(4000, 4000, "BMP")[:200], honest("BMP", 4000)),
    "8 MB of segments": (lambda: with_segments(jpeg(), segment(0xE5, bytes(65_000)), 8 * MB), honest("JPEG")),
    "8 MB of empty segments": (lambda: with_segments(jpeg(), segment(0xE5, b""), 8 * MB), honest("JPEG")),
    "8 MB of comments": (lambda: with_segments(jpeg(), segment(0xFE, bytes(999)), 8 * MB), honest("JPEG")),
    "8 MB of Exif": (lambda: with_segments(jpeg(), bombs.exif(2000), 8 * MB), honest("JPEG")),
    "8 MB between segments": (lambda: with_segments(jpeg(), b"\xff", 8 * MB), honest("JPEG")),
    "8 MB of tables": (
        lambda: with_segments(jpeg(), segment(0xDB, bytes([0, *[1] * 64]) * 1000), 8 * MB),
        honest("JPEG"),
    ),
    "a JPEG of 10,000 scans": (
        lambda: bombs.many_scans(jpeg(2000, progressive=True), 10_000),
        honest("JPEG", 2000, progressive=True),
    ),
    "8 MB of chunks": (lambda: with_chunks(png(), bombs.chunk(b"teXt", b"") * 700_000), honest("PNG")),
    "8 MB of pixels in nothing": (
        lambda: with_chunks(png(), bombs.chunk(b"IDAT", b"") * 19_000),
        honest("PNG"),
    ),
    "texts that unpack to 200 MB": (
        lambda: with_chunks(png(), bombs.packed_text(200 * MB)),
        honest("PNG"),
    ),
    "an AVIF that says 16 x 16": (lambda: bombs.lying_avif(3000, 3000, (16, 16)), honest("AVIF")),
    "an AVIF that says a quarter": (lambda: bombs.lying_avif(3000, 3000, (1500, 1500)), honest("AVIF", 1500)),
    "a TIFF with a tile of 20,000 x 20,000": (lambda: bombs.tiled_tiff(20_000, (16, 16)), honest("TIFF")),
}

# What takes most in each format.
HONEST: dict[str, Make] = {
    "JPEG": lambda: saved(noise(1600), "JPEG"),
    "JPEG in several scans": lambda: saved(noise(1600), "JPEG", progressive=True, subsampling=0),
    "JPEG in CMYK": lambda: saved(noise(1600, "CMYK"), "JPEG", progressive=True),
    "PNG": lambda: saved(noise(1600, "RGBA"), "PNG", compress_level=1),
    "GIF": lambda: saved(noise(1600, "L"), "GIF"),
    "BMP": lambda: saved(noise(1600, "RGBA"), "BMP"),
    "WEBP": lambda: saved(noise(1600), "WEBP", method=0),
    "WEBP, lossless": lambda: saved(noise(1600, "RGBA"), "WEBP", method=0, lossless=True, quality=0),
    "WEBP that moves": lambda: saved(
        noise(1600, "RGBA"), "WEBP", method=0, save_all=True, append_images=[noise(1600).rotate(90)]
    ),
    "AVIF": lambda: saved(noise(1600, "RGBA"), "AVIF", speed=10, subsampling="4:4:4"),
    "AVIF in tiles": lambda: saved(noise(1600), "AVIF", speed=10, tile_rows=2, tile_cols=2),
    "TIFF": lambda: saved(noise(1600).convert("F"), "TIFF", compression="tiff_deflate"),
    "TIFF in JPEG": lambda: saved(noise(1600), "TIFF", compression="jpeg"),
}


def told(encoded: bytes) -> tuple[int, bool]:
    """Bytes that were counted for a picture, and whether it was scored, within the default limits."""
    counted = 0
    try:
        header = read_header(encoded)
        if header.memory > Images().decoded_budget_mb * MB:
            return counted, False
        counted = header.memory
        decode(encoded)
    except ImageError:
        return counted, False
    return counted, True


def status(pid: int | str, field: str) -> int:
    """Bytes that a process holds now (`VmRSS`) or held at most (`VmHWM`)."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


class Meter:
    """CPU time and memory of this process and of the one that decodes apart."""

    def __init__(self) -> None:
        decode(flat(16, 16, "AVIF"))
        decode(png())
        assert models.images.formats.decode.own.process
        self.process = models.images.formats.decode.own.process._process
        self._pids = ("self", self.process.pid)

    def spent(self) -> float:
        """Seconds of CPU time that both processes have had."""
        apart = Path(f"/proc/{self.process.pid}/schedstat").read_text("ascii").split()[0]
        return time.process_time() + int(apart) / 1e9

    def of(self, encoded: bytes) -> dict[str, object]:
        """What decoding *encoded* takes."""
        for pid in self._pids:
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # forget the peaks until now
        held = [status(pid, "VmRSS") for pid in self._pids]
        began = self.spent()
        counted, scored = told(encoded)
        seconds = self.spent() - began
        peaks = [status(pid, "VmHWM") - rss for pid, rss in zip(self._pids, held, strict=True)]
        may = counted + FILES * len(encoded)
        return {"seconds": seconds, "mb": max(peaks) / MB, "may": may / MB, "scored": scored}


def cost(attack: Make, yardstick: Make | None = None) -> dict[str, object]:
    """What *attack* takes, in a fork; its time as a multiple of the yardstick's."""
    encoded, usual = attack(), yardstick() if yardstick else b""
    reader, writer = os.pipe()
    if os.fork() == 0:
        resource.setrlimit(resource.RLIMIT_AS, (SAFETY_NET, SAFETY_NET))
        meter = Meter()
        found = meter.of(encoded)
        if usual:
            began = meter.spent()
            hashlib.sha256(encoded + bytes(MB)).digest()
            hashing = meter.spent() - began
            found["times"] = found["seconds"] / (hashing + min(meter.of(usual)["seconds"] for _ in range(2)))
        os.write(writer, json.dumps(found).encode())
        models.images.formats.decode.stop(meter.process)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        found = json.loads(answer.read())
    os.wait()
    return found


@pytest.fixture(scope="module")
def costs() -> dict[str, dict[str, object]]:
    """Every case's cost."""
    # What is freed goes back at once, so that no case hides in what the one before has left.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
    command = [sys.executable, "-m", "tests.costs.models.test_decoding_cost"]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=300)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_small_file_takes_no_more_than_it_says(costs, name):
    """Memory as counted, and time as for an honest picture of the size that it says."""
    found = costs[name]

    assert found["mb"] < found["may"] + SLACK_MB, found
    assert found["times"] < LIMIT, found


@pytest.mark.parametrize("name", HONEST)
def test_what_is_counted_for_a_picture_is_what_its_decoder_takes(costs, name):
    """No less, so that the budget holds, whatever the format; and it is decoded."""
    found = costs[name]

    assert found["scored"]
    assert found["mb"] < found["may"] + SLACK_MB, found


def test_the_measure_sees_what_a_careless_decoder_would_spend(costs):
    """The pixels of a picture that was decoded here."""
    assert costs["a control that spends here"]["mb"] > CONTROL**2 * 3 / MB


LARGE = """
from concurrent.futures import ThreadPoolExecutor
from models.images.formats.decode import decode
from tests.costs.models.test_decoding_cost import MB, status
from tests.support.bombs import flat

large = flat(5000, 5000, "JPEG")
decode(flat(9, 9, "JPEG"))
before = status("self", "VmRSS")
with ThreadPoolExecutor(2) as threads:
    for _ in range(3):
        list(threads.map(lambda _: decode(large).size, range(2)))
print((status("self", "VmRSS") - before) / (8 * 5000 * 5000))
"""


def test_the_memory_of_large_pictures_goes_back_to_the_system():
    """Less than half of what one takes stays, however many several threads have decoded."""
    done = subprocess.run(
        [sys.executable, "-c", LARGE], capture_output=True, text=True, check=True, timeout=60
    )

    assert float(done.stdout) < 0.5


if __name__ == "__main__":
    found = {name: cost(attack, usual) for name, (attack, usual) in ATTACKS.items()}
    found |= {name: cost(make) for name, make in HONEST.items()}
    found["a control that spends here"] = cost(lambda: flat(CONTROL, CONTROL, "JPEG"))
    print(json.dumps(found))
