"""The attacked service, and the effect of an attack on other callers."""

import http.client
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from demo.process import HOST, SERVICE, free_port
from loadtest.servers import memory_mb, served

LIMIT_BYTES = 12 * 2**30  # of address space, so that an attack exhausts the process and not the machine
PROBE_S = 0.02
TIMEOUT_S = 120
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

    def post(
        self, path: str, body: object, port: int = 0, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Post a request; return status and body, (0, b"") if the connection broke."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        return self.send("POST", path, data, port, {"Content-Type": "application/json", **(headers or {})})

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

    def score_s(self, image: str, repeats: int = 20, **more: Any) -> float:
        """Return the median time of another caller's interactive clipscore, in seconds."""
        times = []
        for number in range(repeats):
            body = {
                "items": [{"prompt": f"neighbour {number}", "image": image}],
                "metrics": ["clipscore"],
                **more,
            }
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
        before, cpu, begun = memory_mb(self.pid), self._cpu_s(), time.monotonic()
        prober.start()
        try:
            yield found
        finally:
            over.set()
            prober.join(TIMEOUT_S)
            with suppress(OSError):
                found.peak_mb = memory_mb(self.pid, "VmHWM")
            found.grown_mb = found.peak_mb - before
            found.cpu_s, found.wall_s = self._cpu_s() - cpu, time.monotonic() - begun

    def _cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100


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


@contextmanager
def meanwhile(attack: Callable[[], object]) -> Iterator[None]:
    """Run an attack in the background while the context is open."""
    thread = threading.Thread(target=attack, daemon=True)
    thread.start()
    time.sleep(1)
    yield
    thread.join()
