"""A real vLLM (its CPU build) as a process, in the environment that `make vllm` builds."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from tests.support.paths import ROOT
from tests.support.service import until

PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
TEMPLATE = Path(__file__).with_name("vllm_template.py")
STARTED_WITHIN_S = 300
CACHE_BYTES = 128 * 2**20  # of keys and values, for each server; the least of its variable is a GiB


@contextmanager
def vllm_template(address: Path) -> Iterator[Path]:
    """Yield the Unix socket of a process that has imported vLLM, or soon has: servers are forks of it."""
    assert PYTHON.exists(), "the tests start a real vLLM: run `make vllm` first"
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # where a server's command says nothing else
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # no process for the worker: a third less time to start
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    command = [str(PYTHON), "-P", str(TEMPLATE), str(address)]
    with subprocess.Popen(command, env=environment) as process:
        try:
            until(address.exists)
            yield address
        finally:
            process.kill()


def fork(template: Path, log: Path, arguments: Sequence[str]) -> int:
    """Start a server with those arguments; return the number of its process, which leads a group."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(template))
        connection.sendall(json.dumps([str(log), *arguments]).encode() + b"\n")
        return int(connection.makefile().read())


def end(process: int) -> None:
    """kill -9 of a server, its engine with it."""
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    until(lambda: not runs(process))


def runs(process: int) -> bool:
    """Whether a server has not ended."""
    return Path(f"/proc/{process}").exists()


def answers(port: int) -> bool:
    """Whether a server answers now."""
    try:
        answer = httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False, verify=False)
    except httpx.TransportError:
        return False
    return answer.status_code == 200


class VLLM:
    """
    One server with one model, known as `m`.

    Args:
        log: the number of the process is written beside it, so that any process can end the server.
        more: options of its command.
    """

    def __init__(self, template: Path, checkpoint: Path, port: int, log: Path, *more: str) -> None:
        self.checkpoint, self.port = checkpoint, port
        self.url = f"http://127.0.0.1:{port}"
        self.base_url = f"{self.url}/v1"
        self._template, self._log, self._process = template, log, log.with_suffix(".process")
        self._arguments = [
            *("--model", str(checkpoint), "--served-model-name", "m", "--dtype", "float32"),
            *("--host", "127.0.0.1", "--port", str(port), "--max-model-len", "2048"),
            *("--enforce-eager", "--scheduling-policy", "priority"),
            *("--distributed-executor-backend", "uni"),
            *("--kv-cache-memory-bytes", str(CACHE_BYTES)),
            *more,
        ]

    def start(self) -> None:
        """Start the process."""
        self._process.write_text(str(fork(self._template, self._log, self._arguments)))

    def wait(self) -> None:
        """Until it answers."""
        deadline = time.monotonic() + STARTED_WITHIN_S
        while time.monotonic() < deadline:
            assert runs(int(self._process.read_text())), self._log.read_text()[-3000:]
            if self.answers():
                return
            time.sleep(0.2)
        raise AssertionError(self._log.read_text()[-3000:])

    def answers(self) -> bool:
        """Whether it answers now."""
        return answers(self.port)

    def kill(self) -> None:
        """kill -9, the engine with it."""
        end(int(self._process.read_text()))

    def counter(self, name: str) -> float:
        """The value of one of its Prometheus counters."""
        lines = httpx.get(f"{self.url}/metrics", trust_env=False, verify=False).text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


@contextmanager
def vllm(template: Path, checkpoint: Path, port: int, log: Path, *more: str) -> Iterator[VLLM]:
    """A server that is killed in the end."""
    server = VLLM(template, checkpoint, port, log, *more)
    server.start()
    try:
        yield server
    finally:
        server.kill()
