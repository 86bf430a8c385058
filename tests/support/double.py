"""The faulty double as a process, and what tests do with it."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from demo.process import free_port, running, url, wait_until_ready
from tests.support.pictures import item
from tests.support.service import value_of

PROFILE = Path(__file__).with_name("faulty.toml")
COMMAND = (sys.executable, "-m", "tests.support.faulty", "--config", str(PROFILE))
TIMEOUT_MS = 120_000
LEFT_BEHIND = ("tasks", "threads", "files", "under_way", "entries", "pixels")


class Double:
    """A running one."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process, self.port, self.log = process, port, log
        # One context of TLS for all, and still a connection for each request.
        self.client = httpx.Client(
            base_url=url(port),
            timeout=TIMEOUT_MS / 1000,
            trust_env=False,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def score(self, *prompts: str, **more: Any) -> httpx.Response:
        """Ask for each prompt's VQAScore with one picture, over a connection of its own."""
        body = {"items": [item(prompt) for prompt in prompts], "metrics": ["vqascore"], **more}
        body.setdefault("timeout_ms", TIMEOUT_MS)
        return self.client.post("/score", json=body)

    def counts(self) -> dict[str, int]:
        """What it holds, and what the question itself takes."""
        counted: dict[str, int] = self.client.get("/counts").json()
        return counted

    def at_rest(self) -> dict[str, int]:
        """What it holds while nothing goes on: the least of several counts."""
        several = [self.counts() for _ in range(10)]
        return {name: min(counted[name] for counted in several) for name in LEFT_BEHIND}

    def instrument(self, name: str) -> float:
        """The value of a Prometheus series; 0 where it has none yet."""
        return value_of(self.client.get("/metrics").text, name)

    def release(self) -> None:
        """Let a held batch go on."""
        self.process.send_signal(signal.SIGUSR1)

    def is_held(self) -> bool:
        """Whether a held batch has begun."""
        return self.counts()["held"] == 1

    def accepts(self) -> bool:
        """Whether new connections are taken."""
        try:
            self.counts()
        except httpx.TransportError:
            return False
        return True


@contextmanager
def faulty(directory: Path, command: Sequence[str] = COMMAND, **settings: str) -> Iterator[Double]:
    """A double that is ready, with its files in *directory*; stopped in the end."""
    port, log = free_port(0), directory / "stderr"
    settings = {"SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{directory}/questions.sqlite3"} | settings
    with running(port, command, log, **settings) as process:
        wait_until_ready(process, port)
        double = Double(process, port, log)
        with double.client:
            yield double
