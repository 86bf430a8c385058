"""
The peers: their packages, commands and wire formats, their environments and their processes.

The virtual environment of a peer, in `build/peers/NAME/venv`, contains its pinned packages, and falls back to
this process's environment for all others, such as torch.  So it is small and quick to make, and both sides
use the same torch.
"""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

import httpx

from demo.process import HOST, STOP_S, free_port, url
from loadtest.servers import Server

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "peers"
LIMIT_S = 600  # limits a start, and is the peers' own timeout, so that it never affects a figure
CLIP = FOLDER / "clip"  # served by infinity, and by the service it is compared with
BEHIND = "import site; site.addsitedir({!r})"  # searched after an environment's own packages

Command = Callable[[str, int], Sequence[str]]
"""The arguments of Python that serve the model of a role on a port."""


@dataclass(frozen=True, slots=True)
class Peer:
    """
    A server to compare with.

    Attributes:
        package: its version is shown; a lock in `servers/` pins it, named as the peer.
        wire: of `loadtest.wires`.
        ready: the path that returns 200 once it serves.
        command: how it is started.
        environment: variables of its processes.
    """

    name: str
    package: str
    wire: str
    ready: str
    command: Command
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def lock(self) -> Path:
        """The file of its pinned packages."""
        return Path(__file__).parent / "servers" / f"{self.name}.lock"

    @property
    def version(self) -> str:
        """The pinned version of its package."""
        pins = dict(line.split("==") for line in self.lock.read_text("utf-8").splitlines() if "==" in line)
        return pins[self.package]


def module(name: str) -> Command:
    """Return the command of a module of `loadtest.peers.servers`."""
    return lambda role, port: ["-m", f"loadtest.peers.servers.{name}", role, str(port)]


def mosec(role: str, port: int) -> Sequence[str]:
    """Return mosec's command with higher limits; its defaults are 3 s and 10 MiB."""
    limits = ["--timeout", str(1000 * LIMIT_S), "--max-request-size", str(2**28), "--log-level", "warning"]
    return ["-m", "loadtest.peers.servers.mosec", role, "--address", HOST, "--port", str(port), *limits]


def flask(role: str, port: int) -> Sequence[str]:
    """Return gunicorn's command with one synchronous worker, as those servers configure it."""
    worker = ["--workers", "1", "--worker-class", "sync", "--timeout", str(LIMIT_S)]
    served = f"loadtest.peers.servers.flask:create('{role}')"
    return ["-m", "gunicorn", *worker, "--bind", f"{HOST}:{port}", "--log-level", "warning", served]


def infinity(role: str, port: int) -> Sequence[str]:
    """
    Return infinity's command, with batches of 64, twice its default.

    Without `torch.compile`, which takes minutes on a CPU, and BetterTransformer, which is for other models.
    """
    options = ["--engine", "torch", "--device", "cpu", "--dtype", "float32", "--batch-size", "64"]
    options += ["--no-compile", "--no-bettertransformer", "--no-trust-remote-code", "--log-level", "warning"]
    start = "from infinity_emb.cli import cli; cli()"
    return ["-c", start, "v2", "--model-id", str(CLIP), "--host", HOST, "--port", str(port), *options]


PEERS = {
    peer.name: peer
    for peer in (
        Peer("litserve", "litserve", "json", "/health", module("litserve")),
        Peer("mosec", "mosec", "json", "/", mosec),
        Peer("flask", "flask", "pickle", "/readyz", flask),
        Peer("fastapi", "fastapi", "json", "/readyz", module("fastapi")),
        Peer("infinity", "infinity-emb", "infinity", "/health", infinity),
    )
}


def install(python: Path, lock: Path) -> None:
    """Install the packages of *lock* for *python*.  Raises `CalledProcessError`; pip prints the reason."""
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "-r", str(lock)], check=True)


def python_of(peer: Peer, folder: Path = FOLDER, install: Callable[[Path, Path], None] = install) -> Path:
    """Return the Python of *peer*'s environment; create it if it is missing or the lock has changed."""
    home = folder / peer.name / "venv"
    python, made = home / "bin" / "python", home / "requirements.lock"
    if made.is_file() and made.read_bytes() == peer.lock.read_bytes():
        return python
    print(f"setting up {home}", flush=True)
    venv.create(home, clear=True)
    [packages] = home.glob("lib/python*/site-packages")
    install(python, peer.lock)
    shared = sysconfig.get_path("purelib")
    (packages / "scoregate.pth").write_text(BEHIND.format(shared) + "\n")
    shutil.copy(peer.lock, made)
    return python


@contextmanager
def peer_served(peer: Peer, role: str, python: Path, log: Path) -> Iterator[Server]:
    """
    Run *peer* around the model of *role*; on exit, or on SIGTERM, stop all its processes.

    Its output goes to *log*.

    Raises:
        SystemExit: it ended, or was not ready in time.
    """
    port = free_port(0)
    assignments = (f"{name}={value}" for name, value in peer.environment.items())
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["env", *assignments, str(python), *peer.command(role, port)],
            cwd=ROOT,
            stdout=output,
            stderr=output,
            start_new_session=True,  # its workers end with it
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
