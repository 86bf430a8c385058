"""The attacked service, an attack's effect on other callers, hostile servers, and pictures."""

import base64
import http.client
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from statistics import median

import orjson
from PIL import Image

from demo.process import HOST, SERVICE, free_port
from loadtest.servers import cpu_s, memory_mb, served

LIMIT_BYTES = 12 * 2**30  # address space: an attack exhausts the process and not the machine
PROBE_S = 0.02
TIMEOUT_S = 120
SCORES = 20  # requests of a neighbour
PROFILE = """
[models.clip]
family = "fake"
role = "clip"
device = "other"

[models.vqa]
family = "fake"
role = "vqa"
fixed_ms = {0}
per_call_ms = {0}

[models.questions]
family = "fake"
role = "questions"
"""


@dataclass
class Impact:
    """
    Effect of an attack.

    Attributes:
        livez_s: seconds of each health check on a new connection.
        peak_mb: peak memory of the process, and its growth.
        cpu_s: CPU seconds.
    """

    livez_s: list[float] = field(default_factory=list)
    peak_mb: float = 0
    grown_mb: float = 0
    cpu_s: float = 0
    wall_s: float = 0

    @property
    def worst_ms(self) -> float:
        """The slowest health check, in milliseconds."""
        return 1000 * max(self.livez_s, default=float("inf"))


@dataclass(frozen=True)
class Target:
    """A running service: its ports and its process."""

    pid: int
    port: int
    dialects: int
    pickles: int

    def post(self, path: str, body: object) -> tuple[int, bytes]:
        """Post a request; return status and body, (0, b"") if the connection broke."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        return self.send("POST", path, data, headers={"Content-Type": "application/json"})

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        port: int = 0,
        headers: Mapping[str, str] = {},
    ) -> tuple[int, bytes]:
        """Send a request of any method; return values as for `post`."""
        connection = http.client.HTTPConnection(HOST, port or self.port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError:
            return 0, b""
        finally:
            connection.close()

    def at_once(
        self, asks: Sequence[Callable[[], tuple[int, bytes]]], wait_s: float, every_s: float = 0
    ) -> list[int]:
        """
        Send requests from a thread each; return the statuses of those answered within *wait_s*.

        Args:
            every_s: between the starts of two requests.
        """
        statuses: list[int] = []
        threads = [
            threading.Thread(target=lambda ask=ask: statuses.append(ask()[0]), daemon=True) for ask in asks
        ]
        for thread in threads:
            thread.start()
            time.sleep(every_s)
        until = time.monotonic() + wait_s
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        return list(statuses)

    def score_s(self, image: str) -> float:
        """Return the median time of another caller's interactive clipscore, in seconds."""
        times = []
        for number in range(SCORES):
            items = [{"prompt": f"neighbour {number}", "image": image}]
            body = {"items": items, "metrics": ["clipscore"]}
            begun = time.monotonic()
            status, _ = self.post("/score", body)
            times.append(time.monotonic() - begun if status == 200 else float("inf"))
        return median(times)

    @contextmanager
    def measured(self) -> Iterator[Impact]:
        """Measure health checks and /proc while the context is open."""
        found, over = Impact(), threading.Event()

        def probe() -> None:
            while not over.is_set():
                begun = time.monotonic()
                status, _ = self.send("GET", "/livez")
                found.livez_s.append(time.monotonic() - begun if status == 200 else float("inf"))
                over.wait(PROBE_S)

        prober = threading.Thread(target=probe, daemon=True)
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")  # the peak begins anew
        before, cpu, begun = memory_mb(self.pid), cpu_s(self.pid), time.monotonic()
        prober.start()
        try:
            yield found
        finally:
            over.set()
            prober.join(TIMEOUT_S)
            with suppress(OSError):
                found.peak_mb = memory_mb(self.pid, "VmHWM")
            found.grown_mb = found.peak_mb - before
            found.cpu_s, found.wall_s = cpu_s(self.pid) - cpu, time.monotonic() - begun


@contextmanager
def target(
    settings: Mapping[str, str],
    command: Sequence[str] = SERVICE,
    model_ms: int = 0,
    limit_bytes: int = LIMIT_BYTES,
    profile: str = PROFILE,
) -> Iterator[Target]:
    """Run the service around fake models with all dialects; yield it when it is ready."""
    dialects, pickles = free_port(0), free_port(0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "fake.toml"
        file.write_text(profile.format(model_ms))
        all_settings = {
            "SCOREGATE_CACHE__SCORES": "memory",
            "SCOREGATE_DIALECTS__ENABLED": '["flow_factory", "unirl", "rerank"]',
            "SCOREGATE_DIALECTS__PORT": str(dialects),
            "SCOREGATE_DIALECTS__PICKLE_PORT": str(pickles),
            **settings,
        }
        limited = ["prlimit", f"--as={limit_bytes}", *command, "--config", str(file)]
        with served(limited, **all_settings) as server:
            yield Target(server.pid, server.port, dialects, pickles)


class Handler(BaseHTTPRequestHandler):
    """A hostile server's handler: a connection that the other side closes ends its response."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer, until the connection breaks."""
        try:
            self.answer()
        except OSError:
            self.close_connection = True

    def answer(self) -> None:
        """Send the response."""
        raise NotImplementedError

    def log_message(self, *args: object) -> None:
        """Log nothing."""


class HostileServer(ThreadingHTTPServer):
    """A server on loopback that holds many connections."""

    daemon_threads = True
    request_queue_size = 512


@contextmanager
def hostile_server(handler: type[Handler]) -> Iterator[int]:
    """Run a server of *handler*, and yield its port."""
    with HostileServer((HOST, 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


@contextmanager
def meanwhile(attack: Callable[[], object]) -> Iterator[None]:
    """Run an attack in the background while the context is open."""
    thread = threading.Thread(target=attack, daemon=True)
    thread.start()
    time.sleep(1)
    yield
    thread.join()


def jpeg(seed: int = 0) -> bytes:
    """Return a JPEG of 64x64 pixels of noise."""
    file = BytesIO()
    Image.effect_noise((64, 64), 50 + seed).convert("RGB").save(file, "JPEG")
    return file.getvalue()


def padded(size: int) -> bytes:
    """Return a JPEG padded to *size* bytes."""
    return jpeg().ljust(size, b"\0")


def progressive(seed: int) -> bytes:
    """Return a progressive JPEG of 49 million pixels with twenty superfluous scans of about 5 kB each."""
    file = BytesIO()
    Image.new("L", (7000, 7000), 100).save(file, "JPEG", progressive=True, quality=50)
    data = file.getvalue()
    last = data.rindex(b"\xff\xda")
    return data[:last] + data[last:-2] * 21 + b"\xff\xd9" + bytes([seed])


def gif(seed: int) -> bytes:
    """Return a GIF of 600 frames of 220x220 pixels."""
    head = b"GIF89a" + struct.pack("<HHBBB", 220, 220, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"\x21\xf9\x04\x08\0\0\0\0\x2c" + struct.pack("<HHHHB", 0, 0, 220, 220, 0)
    comment = b"\x21\xfe\x01" + bytes([seed]) + b"\0"
    return head + (frame + b"\x02\x02\x44\x01\0") * 600 + comment + b"\x3b"


def base64_of(data: bytes) -> str:
    """Encode *data* as base64 text."""
    return base64.b64encode(data).decode()
