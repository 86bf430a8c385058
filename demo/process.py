"""The service as a process of our own: started, waited for, stopped."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from demo.progress import progress

SERVICE = (sys.executable, "-m", "service")
HOST = "127.0.0.1"
START_S = 240  # two busy cores need a while to import torch
STOP_S = 40  # the service finishes what it has begun


class Failed(Exception):
    """A command can't go on; the message is one line for people."""


def url(port: int) -> str:
    """Where a service on *port* is reached."""
    return f"http://{HOST}:{port}"


def free_port(wanted: int) -> int:
    """*wanted*, or any free port where it is 0.  Raises `Failed` where another process has it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the service will
        try:
            probe.bind((HOST, wanted))
        except (OSError, OverflowError) as exc:
            raise Failed(f"port {wanted} can't be had: {exc}") from exc
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(
    port: int, command: Sequence[str] = SERVICE, log: Path | None = None, **settings: str
) -> Iterator[subprocess.Popen[bytes]]:
    """
    The service as a process of our own, stopped however the block ends, by SIGTERM too.

    Its settings go through env(1), since our own environment is not ours to read; its stderr goes
    to *log*, or where ours goes.
    """
    settings = {"SCOREGATE_SERVER__HOST": HOST, "SCOREGATE_SERVER__PORT": str(port)} | settings
    assignments = (f"{name}={value}" for name, value in settings.items())
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    stderr = log.open("wb") if log else None
    process = subprocess.Popen(["env", *assignments, *command], stderr=stderr)
    try:
        yield process
    finally:
        stop(process)
        if stderr:
            stderr.close()
        signal.signal(signal.SIGTERM, before)


def stop(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, and SIGKILL where that does not help."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_until_ready(process: subprocess.Popen[bytes], port: int) -> None:
    """Return once `/readyz` says so.  Raises `Failed` where the process ends or takes too long."""
    begun = time.monotonic()
    progress(f"starting the service on port {port}\n")
    while (waited := time.monotonic() - begun) < START_S:
        progress(f"loading models: {waited:.0f} s")
        try:
            status = process.wait(0.3)
        except subprocess.TimeoutExpired:
            if is_ready(port):
                progress(f"the service is ready after {waited:.0f} s\n")
                return
        else:
            raise Failed(f"the service ended with status {status} before it was ready")
    raise Failed(f"the service was not ready after {START_S} s")


def is_ready(port: int) -> bool:
    try:
        return httpx.get(f"{url(port)}/readyz", timeout=5, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False
