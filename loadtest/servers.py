"""Servers under test as processes, and the load generator that calls them."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import httpx
import orjson

from demo.process import HOST, SERVICE, free_port, running, url, wait_until_ready
from loadtest.results import Outcome
from loadtest.shape import Shape
from loadtest.workloads import Spec

PROFILE = Path(__file__).with_name("fake.toml")
FAKE = (*SERVICE, "--config", str(PROFILE))
BASELINES = (sys.executable, "-m", "loadtest.baselines")


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, its process and its wire format."""

    port: int
    pid: int
    wire: str = "scoregate"

    def run(self, spec: Spec) -> list[Outcome]:
        """Send a workload from another process; return one outcome per request."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "outcomes.json"
            command = (sys.executable, "-m", "loadtest.generator", HOST, str(self.port))
            wanted = orjson.dumps(asdict(replace(spec, wire=self.wire))).decode()
            subprocess.run([*command, wanted, str(file)], check=True)
            return [Outcome(**outcome) for outcome in orjson.loads(file.read_bytes())]

    def client(self) -> httpx.Client:
        """Return a client for single requests that are not timed."""
        return httpx.Client(base_url=url(self.port), timeout=600, trust_env=False)

    def sample(self, series: str) -> float:
        """Return the value of a series of `/metrics`, labels included in its name."""
        with self.client() as client:
            for line in client.get("/metrics").text.splitlines():
                if line.startswith(series + " "):
                    return float(line.rpartition(" ")[2])
        raise SystemExit(f"/metrics has no {series}")


def memory_mb(pid: int, field: str = "VmRSS") -> float:
    """Return a field of a process's /proc status in MiB, by default its resident memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process, all its threads included, in seconds."""
    return name_and_cpu_s(Path(f"/proc/{pid}"))[1]


def name_and_cpu_s(folder: Path) -> tuple[str, float]:
    """Return the name and the CPU seconds of the process or thread of a folder in /proc."""
    front, _, fields = (folder / "stat").read_text().rpartition(")")
    user, system = fields.split()[11:13]
    return front.partition("(")[2], (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(command: Sequence[str], **settings: str) -> Iterator[Server]:
    """Run *command* on a free port, which replaces `PORT` in it; yield the server when it is ready."""
    port = free_port(0)
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{folder}/questions.sqlite3",
            "SCOREGATE_CACHE__SCORES": "off",
        } | settings
        arguments = [str(port) if part == "PORT" else part for part in command]
        with running(port, arguments, Path(folder) / "log", **settings) as process:
            wait_until_ready(process, port)
            yield Server(port, process.pid)


def demo(**settings: str) -> AbstractContextManager[Server]:
    """Run the service with its demo models."""
    return served(SERVICE, **settings)


def null() -> AbstractContextManager[Server]:
    """Run the service around the null model: a fake that takes no time."""
    return served(FAKE)


def timed(shape: Shape, command: Sequence[str] = FAKE, **settings: str) -> AbstractContextManager[Server]:
    """Run the service around the timed model: a fake that holds its device."""
    table = "SCOREGATE_MODELS__VQA__"
    cost = {
        f"{table}FIXED_MS": str(shape.fixed_ms),
        f"{table}PER_CALL_MS": str(shape.per_call_ms),
        f"{table}BATCH__MAX_ITEMS": str(shape.max_items),
    }
    return served(command, **cost | settings)


def baseline(server: str, shape: Shape | None = None) -> AbstractContextManager[Server]:
    """Run one of the baselines, with the timed model's shape if it has a model."""
    cost = []
    if shape is not None:
        cost += ["--fixed-ms", str(shape.fixed_ms), "--per-call-ms", str(shape.per_call_ms)]
        cost += ["--max-items", str(shape.max_items)]
    return served([*BASELINES, "--server", server, "--port", "PORT", *cost])
