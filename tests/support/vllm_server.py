"""A real vLLM (its CPU build) as a process, in the environment that `make vllm` builds."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from tests.support.paths import ROOT

PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
STARTED_WITHIN_S = 300


class VLLM:
    """
    One server with one model, known as `m`.

    Args:
        log: the process group is written beside it, so that any process can end the server.
        more: options of its command.
    """

    def __init__(self, checkpoint: Path, port: int, log: Path, *more: str) -> None:
        assert PYTHON.exists(), "the tests start a real vLLM: run `make vllm` first"
        self.checkpoint, self.port = checkpoint, port
        self.url = f"http://127.0.0.1:{port}"
        self.base_url = f"{self.url}/v1"
        self._log, self._group = log, log.with_suffix(".group")
        self._process: subprocess.Popen[bytes] | None = None
        self._command = [
            *(str(PYTHON), "-m", "vllm.entrypoints.openai.api_server"),
            *("--model", str(checkpoint), "--served-model-name", "m", "--dtype", "float32"),
            *("--host", "127.0.0.1", "--port", str(port), "--max-model-len", "2048"),
            *("--enforce-eager", "--scheduling-policy", "priority"),
            *("--distributed-executor-backend", "uni"),
            *more,
        ]

    def start(self) -> None:
        """Start the process."""
        environment = {
            **os.environ,
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # no process for the worker: a third less time to start
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
        }
        with self._log.open("ab") as output:
            # A group of its own: the engine is a child, and must not outlive its server.
            self._process = subprocess.Popen(
                self._command, env=environment, stdout=output, stderr=output, start_new_session=True
            )
        self._group.write_text(str(self._process.pid))

    def wait(self) -> None:
        """Until it answers."""
        deadline = time.monotonic() + STARTED_WITHIN_S
        while time.monotonic() < deadline:
            assert not self._process or self._process.poll() is None, self._log.read_text()[-3000:]
            if self.answers():
                return
            time.sleep(0.2)
        raise AssertionError(self._log.read_text()[-3000:])

    def answers(self) -> bool:
        """Whether it answers now."""
        try:
            return httpx.get(f"{self.url}/health", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """kill -9, the engine with it."""
        with suppress(ProcessLookupError):
            os.killpg(int(self._group.read_text()), signal.SIGKILL)
        if self._process:
            self._process.wait(30)

    def counter(self, name: str) -> float:
        """The value of one of its Prometheus counters."""
        lines = httpx.get(f"{self.url}/metrics", trust_env=False).text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


@contextmanager
def vllm(checkpoint: Path, port: int, log: Path, *more: str) -> Iterator[VLLM]:
    """A server that is killed in the end."""
    server = VLLM(checkpoint, port, log, *more)
    server.start()
    try:
        yield server
    finally:
        server.kill()
