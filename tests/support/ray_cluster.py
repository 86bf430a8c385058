"""A real Ray cluster of processes of its own, and gateways on it."""

import os
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from uuid import uuid4

from demo.process import HOST, SERVICE, free_port, running, wait_until_ready
from tests.support.service import until

RAY = Path(sys.executable).with_name("ray")
STARTED_WITHIN_S = 120
REPLICA = "ray::ServeReplica:scoregate:"
LISTEN = "0A"  # the state of a TCP socket
# Each process of Ray imports it for a second or more.
FEW_PROCESSES = {
    # No worker before there is work for it: most were ended unused.
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_worker_prestart": "0",
    # An actor reads the footers of Parquet files, in place of 32 for each read.
    "RAY_DATA_PARQUET_FOOTER_NUM_ACTORS": "1",
    # No actor collects what Ray Data would report of its use, and no process counts what nobody reads.
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",
}


@dataclass(frozen=True)
class Profile:
    """A file of settings, and the environment that its services need beside it."""

    path: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def env(self) -> list[str]:
        """The start of a command in that environment."""
        return ["env", *(f"{name}={value}" for name, value in self.environment.items())]


class Cluster:
    """
    One or more nodes on this machine, each with a raylet of its own.

    Args:
        address: of a cluster that another process has started in that directory.
    """

    def __init__(self, directory: str, address: str = "") -> None:
        self.directory = directory
        self.address = address or f"{HOST}:{free_port(0)}"
        self.nodes: list[subprocess.Popen[bytes]] = []
        token = Path(directory, "token")
        if not address:
            token.write_text(uuid4().hex)
        self._environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), **FEW_PROCESSES}

    def profile(self, path: Path) -> Profile:
        """The settings in *path*, of services that know the token which the cluster asks for."""
        return Profile(path, self._environment)

    def add_node(self, cpus: int = 4) -> subprocess.Popen[bytes]:
        """Start a node, the head first, and wait until it has joined."""
        port = self.address.rpartition(":")[2]
        head = ["--head", "--port", port, "--temp-dir", self.directory, "--include-dashboard=false"]
        joins = ["--address", self.address] if self.nodes else [*head, "--no-monitor"]
        command = [*self.profile(Path()).env, str(RAY), "start", *joins, f"--num-cpus={cpus}"]
        command += ["--include-log-monitor=false", "--object-store-memory=100000000", "--block"]
        log = Path(self.directory, f"node-{len(self.nodes)}.log")
        with log.open("wb") as output:
            node = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
        self.nodes.append(node)
        until(lambda: "Ray runtime started" in log.read_text() or node.poll() is not None, STARTED_WITHIN_S)
        assert node.poll() is None, log.read_text()
        return node

    def kill_node(self, node: subprocess.Popen[bytes]) -> None:
        """kill -9 of a raylet and everything that it has started."""
        for process in descendants(node.pid):
            kill(process)
        kill(node.pid)
        node.wait(30)
        self.nodes.remove(node)

    def deploy(self, profile: Path) -> None:
        """`scoregate-server deploy`."""
        subprocess.run(
            [*self.profile(profile).env, *SERVICE, "deploy", "--config", str(profile)],
            check=True,
            timeout=300,
        )

    def stop(self) -> None:
        """End all of it."""
        for node in reversed(self.nodes):
            left = descendants(node.pid)
            for process in (*left, node.pid):
                kill(process)
            node.wait(30)


@contextmanager
def ray_cluster(nodes: int = 1) -> Iterator[Cluster]:
    """A cluster; its folder has a short name, since sockets lie in it."""
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as directory:
        cluster = Cluster(directory)
        try:
            for _ in range(nodes):
                cluster.add_node()
            yield cluster
        finally:
            cluster.stop()


@contextmanager
def gateway(profile: Profile, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A service with that profile, ready, and its port."""
    port = free_port(0)
    with running(port, (*SERVICE, "--config", str(profile.path)), log, **profile.environment) as process:
        wait_until_ready(process, port)
        yield process, port


def replicas(model: str) -> list[int]:
    """The processes of a model's replicas."""
    return [pid for pid, command in processes().items() if command.startswith(f"{REPLICA}{model}")]


def processes() -> dict[int, str]:
    """What runs on this machine, by process id."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            found[int(place.name)] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:  # it has ended
            continue
    return found


def descendants(parent: int) -> list[int]:
    """Every process that *parent* has started, and those that they have."""
    children = defaultdict[int, list[int]](list)
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, started_by = int(place.parent.name), int(place.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children[started_by].append(pid)
    found = [*children[parent]]
    for pid in found:  # it grows meanwhile
        found += children[pid]
    return found


@dataclass(frozen=True)
class Listening:
    """A TCP port that is open, and the process that opened it."""

    address: IPv4Address | IPv6Address
    port: int
    command: str


def listening(parent: int) -> list[Listening]:
    """The ports that *parent* and everything it has started listen on, as /proc tells."""
    commands = processes()
    owners = {inode: pid for pid in (parent, *descendants(parent)) for inode in sockets(pid)}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            address, port = fields[1].split(":")
            if fields[3] == LISTEN and fields[9] in owners:
                found.append(Listening(address_of(address), int(port, 16), commands[owners[fields[9]]]))
    return found


def sockets(pid: int) -> Iterator[str]:
    """The inodes of the sockets that a process holds."""
    for place in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            kind, _, inode = os.readlink(place).partition(":")
        except OSError:  # closed meanwhile
            continue
        if kind == "socket":
            yield inode.strip("[]")


def address_of(words: str) -> IPv4Address | IPv6Address:
    """An address as the kernel prints it: words of four bytes, the last byte first."""
    address = ip_address(b"".join(bytes.fromhex(words[at : at + 8])[::-1] for at in range(0, len(words), 8)))
    return getattr(address, "ipv4_mapped", None) or address


def kill(pid: int) -> None:
    """kill -9, if it still runs."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
