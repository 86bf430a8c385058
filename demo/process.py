"""The service as a child process: start, wait, stop."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom

import httpx
from huggingface_hub import constants

HUB = Path(constants.HF_HUB_CACHE)
SERVICE = (sys.executable, "-m", "service")
HOST = "127.0.0.1"
START_S = 240  # importing torch takes long on two busy cores
LOOK_S = 0.1  # the time between two checks of `/readyz`
REPORT_S = 30  # a line that stays, for logs
STOP_S = 40  # the service finishes running requests
# A server may need a minute until it listens.  Linux gives these ports to no connection meanwhile, and Ray's
# workers use lower ones.
PORTS = range(20_000, 32_768)
TRIES = 20
GIVEN: set[int] = set()  # ports that this process chose, and may not have bound yet


def progress(line: str) -> None:
    """
    Replace the line before by *line*; if stderr is not a terminal, print only lines that end in a newline.
    """
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
    elif line.endswith("\n"):
        print(line, end="", file=sys.stderr, flush=True)


class Failed(Exception):
    """A command cannot continue; the message is one line for people."""


def url(port: int) -> str:
    """Return the URL of a service on *port*."""
    return f"http://{HOST}:{port}"


def free_port(wanted: int) -> int:
    """
    Return *wanted*, or a free port of `PORTS` if it is 0: each time another one.

    Raises:
        Failed: the port is in use.
    """
    for port in [wanted] if wanted else SystemRandom().sample([*{*PORTS} - GIVEN], TRIES):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the service sets it, too
            try:
                probe.bind((HOST, port))
                GIVEN.add(port)
                return port
            except (OSError, OverflowError) as exc:
                reason = exc
    raise Failed(f"cannot listen on port {port}: {reason}") from reason


@contextmanager
def running(
    port: int, command: Sequence[str] = SERVICE, log: Path | None = None, **settings: str
) -> Iterator[subprocess.Popen[bytes]]:
    """
    Run the service as a child process; stop it on exit, also on SIGTERM.

    Settings are passed by env(1), since this code must not read its own environment; stderr goes to *log*,
    by default to ours.
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
    """Send SIGTERM, then SIGKILL if the process does not end."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_until_ready(
    process: subprocess.Popen[bytes],
    port: int,
    limit_s: float = START_S,
    hub: Path = HUB,
    say: Callable[[str], None] = progress,
) -> None:
    """
    Wait until `/readyz` succeeds, and show what is missing meanwhile.

    Args:
        limit_s: infinite if weights may have to be downloaded.
        hub: the folder that they are downloaded to.
        say: called with each line.

    Raises:
        Failed: the process ended, or took too long.
    """
    begun, reported, fetched = time.monotonic(), 0, fetched_bytes(hub)
    say(f"starting the service on port {port}\n")
    # Plain HTTP: to read certificates would take 20 ms.
    with httpx.Client(base_url=url(port), timeout=5, trust_env=False, verify=False) as client:
        while (waited := time.monotonic() - begun) < limit_s:
            try:
                status = process.wait(LOOK_S)
            except subprocess.TimeoutExpired:
                missing = waits_for(client, fetched_bytes(hub) - fetched)
                if not missing:
                    say(f"the service is ready after {waited:.0f} s\n")
                    return
                line = f"{waited:.0f} s, waiting for {missing}"
                if waited >= reported + REPORT_S:
                    line, reported = line + "\n", reported + REPORT_S
                say(line)
            else:
                raise Failed(f"the service ended with status {status} before it was ready")
    raise Failed(f"the service was not ready after {limit_s:.0f} s")


def waits_for(client: httpx.Client, fetched: int) -> str:
    """
    Return what the service is waiting for, with *fetched* bytes of weights so far; empty if it is ready.
    """
    try:
        answer = client.get("/readyz")
    except httpx.TransportError:  # its port opens when its models are loaded
        return "models to load" + (f", {fetched / 1e6:.0f} MB of weights fetched so far" if fetched else "")
    return "" if answer.status_code == 200 else str(answer.json()["detail"])


def fetched_bytes(hub: Path) -> int:
    """Return the bytes of weights in a local cache of the hub, including unfinished downloads."""
    sizes = []
    for file in hub.glob("models--*/blobs/*"):
        with suppress(FileNotFoundError):  # renamed when its download finished
            sizes.append(file.stat().st_size)
    return sum(sizes)
