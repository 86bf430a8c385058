"""Servers under test as processes, the load generator that calls them, and single requests to them."""

import base64
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx
import orjson

from demo.process import HOST, SERVICE, free_port, running, url, wait_until_ready
from loadtest.corpus import QUESTIONS
from loadtest.results import Outcome
from loadtest.simulate import Shape
from loadtest.workloads import Spec

PROFILE = Path(__file__).with_name("fake.toml")
FAKE = (*SERVICE, "--config", str(PROFILE))
BASELINES = (sys.executable, "-m", "loadtest.baselines")
TIMEOUT_MS = 600_000

Item = dict[str, Any]


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

    def post_s(self, body: bytes) -> float:
        """Return the seconds of one complete `POST /score`, sent by a client with minimal overhead."""
        with closing(HTTPConnection(HOST, self.port)) as connection:
            connection.connect()
            began = perf_counter()
            connection.request("POST", "/score", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
            seconds = perf_counter() - began
        if answer.status != 200 or orjson.loads(content)["partial"]:
            raise SystemExit(f"POST /score: {answer.status} {content[:300]!r}")
        return seconds

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


@contextmanager
def loop(threads: str, way: str = "calls", questions: int = len(QUESTIONS)) -> Iterator[Callable[[], float]]:
    """Run `loadtest.loops`; yield a function that returns the seconds of the questions about one picture."""
    command = (sys.executable, "-m", "loadtest.loops", way, threads, str(questions))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines, answers = process.stdin, process.stdout

        def exchange(line: str) -> str:
            lines.write(line)
            lines.flush()
            answer = answers.readline()
            if not answer:
                raise SystemExit("the loop ended early")
            return answer

        exchange("")  # it is ready
        yield lambda: float(exchange("\n"))


def item(prompt: str, image: bytes, **more: Any) -> Item:
    """Return an item with its encoded picture in base64."""
    return {"prompt": prompt, "image": base64.b64encode(image).decode(), **more}


def batched(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Split *items* into requests."""
    return (items[start : start + size] for start in range(0, len(items), size))


def results(client: httpx.Client, items: Sequence[Item], metric: str, size: int) -> Iterator[dict[str, Any]]:
    """Yield the results of *items* by one metric, in requests of *size*; show progress on a terminal."""
    for number, part in enumerate(batched(items, size)):
        body = {"items": part, "metrics": [metric], "timeout_ms": TIMEOUT_MS}
        yield from client.post("/score", json=body).raise_for_status().json()["results"]
        if sys.stderr.isatty():
            done = number * size + len(part)
            print(f"\r{metric}: {done}/{len(items)}\033[K\r", end="", file=sys.stderr, flush=True)


def ready_metrics(client: httpx.Client) -> list[str]:
    """Return the names of the ready metrics."""
    answer = client.get("/models").raise_for_status().json()
    return [name for name, metric in answer["metrics"].items() if metric["ready"]]
