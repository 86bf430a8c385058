"""
What a refusal costs: the CPU time of a few hashes of the largest body, and 50 MB beyond what was received.

Hashing is the yardstick, measured right beside each case: a slow or busy machine is slow at both.
Measured in a process of its own, where each case runs in a fork: resident memory, native decoders
included, can only be told as a peak, and a peak only once.
"""

import base64
import hashlib
import json
import os
import resource
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable

import pytest

from models.images.image import Image, ImageError
from service.core.errors import ImageUndecodable, ScoregateError
from service.core.settings.sections import Images
from service.images.loader import Base64, opened
from service.metrics.common.registry import metrics
from service.web.server.body import parse
from service.web.server.multipart import Form
from service.web.wire.types import requests_with
from tests.support.bombs import chunk

LIMIT_HASHES, LIMIT_MB = 5, 50
PARTS = 4
PART = bytes(64 * 2**20 // PARTS)  # of the largest body that `server.body_limit_mb` takes

Work = Callable[[], object]


def declared(width: int, height: int, *more: bytes) -> bytes:
    """A PNG whose header says so, with hardly any pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(bytes(100)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(more) + pixels + chunk(b"IEND", b"")


def bomb(megabytes: int, kind: bytes = b"zTXt") -> bytes:
    """A PNG whose compressed text unpacks to that much."""
    packed = zlib.compress(bytes(megabytes * 2**20), 9)
    return declared(1, 1, chunk(kind, b"k\0\1\0\0\0" + packed if kind == b"iTXt" else b"k\0\0" + packed))


def reading(body: bytes) -> Work:
    """To parse and check a body."""
    wire = requests_with(metrics()).score
    return lambda: parse(body, wire)


def forming(body: bytes, boundary: str = "b") -> Work:
    """To read a multipart body as it comes."""

    def form() -> None:
        read = Form(f"multipart/form-data; boundary={boundary}", 8193)
        for start in range(0, len(body), PIECE):
            read.feed(body[start : start + PIECE])
        read.read()

    return form


def part(data: bytes, *headers: bytes) -> bytes:
    """A body with one part, the request."""
    named = b'Content-Disposition: form-data; name="request"'
    return b"\r\n".join([b"--b", named, *headers, b"", data, b"--b--", b""])


def opening(image: bytes) -> Work:
    """To open a picture as an item's text carries it."""
    return looking(base64.b64encode(image).decode())


def looking(text: str) -> Work:
    """To open a picture from what should be base64."""

    def look() -> None:
        image = opened(Base64(text), Images(), Image, "as_stored", ())
        if not isinstance(image, Image):
            raise image
        try:
            image.reserve()
            image.rgb.load()
        except ImageError as exc:
            raise ImageUndecodable from exc

    return look


def items(*some: object) -> bytes:
    return json.dumps({"items": some}).encode()


def texts(count: int) -> bytes:
    """A PNG with that many texts, each unpacking to almost a megabyte."""
    packed = zlib.compress(bytes(2**20 - 1))
    return declared(1, 1, *(chunk(b"zTXt", b"k%d\0\0" % n + packed) for n in range(count)))


def item(prompt: str, image: object = "") -> dict[str, object]:
    return {"prompt": prompt, "image": image}


def numbers(count: int) -> bytes:
    """A request with that many numbers in the place of metrics."""
    return b'{"prompt":"a","images":["AA=="],"metrics":[' + b"1," * (count - 1) + b"1]}"


def asking(parent: object) -> dict[str, object]:
    """An item whose 64 questions have 60 parents each."""
    questions = [{"id": n, "text": f"is it {n}?", "depends_on": [parent] * 60} for n in range(1, 65)]
    return {**item("a"), "options": {"dsg": {"question_set": questions}}}


STRANGE = {f"x{n}": n for n in range(16)}
PIECE = 2**16  # bytes that a connection brings at once

# What each is refused with, and how it is made (late: some are large).  Texts in a PNG are skipped.
CASES: dict[str, tuple[str, Callable[[], Work]]] = {
    "nested 100,000 deep": ("malformed", lambda: reading(b"[" * 100_000)),
    "64 MB of garbage": ("malformed", lambda: reading(b"x" * 2**26)),
    "64 MB of garbage after a prompt": ("malformed", lambda: reading(b'{"prompt":"a", ' + b"x" * 2**26)),
    "64 MB of empty lists": ("too_large", lambda: reading(b"[" + b"[]," * (2**26 // 3))),
    "100,000 empty items": ("invalid", lambda: reading(b'{"items":[' + b"{}," * 99_999 + b"{}]}")),
    "100,000 unknown fields": ("invalid", lambda: reading(items({f"x{n}": n for n in range(100_000)}))),
    "8,192 strange frames": ("invalid", lambda: reading(items(*[item("x", [STRANGE] * 64)] * 128))),
    "128 strange items": ("invalid", lambda: reading(items(*[STRANGE] * 128))),
    "590,000 metrics that are numbers": ("invalid", lambda: reading(numbers(590_000))),
    "500,000 parents that are no numbers": ("invalid", lambda: reading(items(*[asking(0.5)] * 128))),
    "prompts of 10,000 characters": ("invalid", lambda: reading(items(*[item("x" * 10_000)] * 128))),
    "a surrogate in a megabyte": ("invalid", lambda: reading(items(item("\ud800" + "x" * 2**20)))),
    "a part in punycode": (
        "malformed",
        lambda: forming(part(b"a" * 2**26, b"Content-Type: text/plain; charset=punycode")),
    ),
    "64 MB of delimiters that are none": ("malformed", lambda: forming(part(b"\r\n--bx" * (2**26 // 6)))),
    "64 MB of line ends before a form": ("malformed", lambda: forming(b"\r\n" * 2**25 + part(b"{}"))),
    "64 MB of spaces after a delimiter": ("malformed", lambda: forming(part(b"\r\n--b" + b" " * 2**26))),
    "a header of 64 MB": ("malformed", lambda: forming(part(b"{}", b"X: " + b"x" * 2**26))),
    "64 MB of headers": ("malformed", lambda: forming(part(b"{}", b"\r\n".join([b"X: x"] * (2**26 // 6))))),
    "10 MB that is not base64": ("not_base64", lambda: looking("A" * 10_000_000 + "!")),
    "60 MB of base64": ("image_too_large", lambda: looking("A" * 60_000_000)),
    "30,000 x 30,000": ("image_too_large", lambda: opening(declared(30_000, 30_000))),
    "a zTXt bomb": ("", lambda: opening(bomb(200))),
    "an iTXt bomb": ("", lambda: opening(bomb(200, b"iTXt"))),
    "60 texts just small enough": ("", lambda: opening(texts(60))),
    "a chunk that claims 2 GB": (
        "image_undecodable",
        lambda: opening(declared(1, 1, b"\x7f\xff\xff\xfftEXt")),
    ),
}


def cost(make: Callable[[], Work]) -> dict[str, object]:
    """Code, CPU time in hashes of the largest body, and megabytes of the work, measured in a fork."""
    work = make()
    reader, writer = os.pipe()
    if os.fork() == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        code = ""

        def refused() -> None:
            nonlocal code
            try:
                work()
            except ScoregateError as error:
                code = error.code

        # The least of the one and the most of the other: what disturbs both shall not decide.
        refusal, hashing = min(times(refused)), PARTS * max(times(lambda: hashlib.sha256(PART)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        told = {"code": code, "hashes": refusal / hashing, "mb": (peak - before) / 1024}
        os.write(writer, json.dumps(told).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        told = json.loads(answer.read())
    os.wait()
    return told


def times(work: Work) -> list[float]:
    """CPU seconds of *work*, each of five times."""
    took = []
    for _ in range(5):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return took


@pytest.fixture(scope="module")
def costs() -> dict[str, dict[str, object]]:
    """Every case's cost."""
    # What is freed goes back at once, so that no case hides in what the one before has left.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
    command = [sys.executable, "-m", "tests.costs.web.test_cost_of_bad_input"]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=600)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_is_cheap(costs, name):
    """Within both limits, and refused for the right reason."""
    told = costs[name]
    assert CASES[name][0] == told["code"]
    assert told["hashes"] < LIMIT_HASHES, told
    assert told["mb"] < LIMIT_MB, told


def test_the_measure_sees_what_is_spent(costs):
    """Work that takes both time and memory shows in both."""
    spent = costs["a control that spends"]
    assert spent["mb"] > LIMIT_MB
    assert spent["hashes"] > 0


if __name__ == "__main__":
    control = {"a control that spends": ("", lambda: lambda: b"x" * (100 * 2**20))}
    print(json.dumps({name: cost(make) for name, (_, make) in (CASES | control).items()}))
