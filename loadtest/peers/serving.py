"""Peers as processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

import httpx

from demo.process import STOP_S, free_port, url
from loadtest.peers.peer import LIMIT_S, Peer
from loadtest.peers.rows import Role
from loadtest.servers import Server

ROOT = Path(__file__).parents[2]


@contextmanager
def peer_served(peer: Peer, role: Role, python: Path, log: Path) -> Iterator[Server]:
    """
    Run *peer* around the model of *role*; on exit, or on SIGTERM, stop all its processes.

    Its output goes to *log*.

    Raises:
        SystemExit: it ended, or was not ready in time.
    """
    port = free_port(0)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(python), *peer.command(role, port)],
            cwd=ROOT,
            stdout=output,
            stderr=output,
            start_new_session=True,  # so that its workers end with it
        )
        try:
            wait(peer, process, port, log)
            yield Server(port, process.pid, peer.wire)
        finally:
            end(process)
            signal.signal(signal.SIGTERM, before)


def wait(peer: Peer, process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    """Wait until it responds."""
    until = monotonic() + LIMIT_S
    while monotonic() < until:
        if process.poll() is not None:
            raise SystemExit(f"{peer.name} ended with status {process.returncode}; see {log}")
        try:
            if httpx.get(url(port) + peer.ready, timeout=5, trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        sleep(0.3)
    raise SystemExit(f"{peer.name} was not ready after {LIMIT_S} s; see {log}")


def end(process: "subprocess.Popen[bytes]") -> None:
    """Send SIGTERM to its process group, then SIGKILL to the remaining processes."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
