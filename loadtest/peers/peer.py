"""The peers: what is installed, how each is started, and which format it takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from demo.process import HOST
from loadtest.peers.scoring import Role

FOLDER = Path(__file__).parents[2] / "build" / "peers"
LIMIT_S = 600  # to start, and of the time limits that a peer has itself: no figure is to be theirs
CLIP = FOLDER / "clip"  # what infinity serves, and the service beside it

Command = Callable[[Role, int], Sequence[str]]
"""The arguments for Python: to serve the model of a role on a port."""


@dataclass(frozen=True, slots=True)
class Peer:
    """
    A server to compare with.

    Attributes:
        package: the one whose version is told; `requirements.lock` in the peer's folder has it.
        wire: of `loadtest.generator.wires`.
        ready: the path that answers 200 once it serves.
        command: how it is started.
    """

    name: str
    package: str
    wire: str
    ready: str
    command: Command

    @property
    def lock(self) -> Path:
        """What is installed for it."""
        return Path(__file__).parent / self.name / "requirements.lock"

    @property
    def version(self) -> str:
        """The version of its package that the lock has."""
        pins = dict(line.split("==") for line in self.lock.read_text("utf-8").splitlines() if "==" in line)
        return pins[self.package]


def litserve(role: Role, port: int) -> Sequence[str]:
    """See `loadtest/peers/litserve/serve.py`."""
    return ["-m", "loadtest.peers.litserve.serve", role, str(port)]


def mosec(role: Role, port: int) -> Sequence[str]:
    """Its time limit is 3 s and its largest body 10 MiB unless it is told otherwise."""
    limits = ["--timeout", str(1000 * LIMIT_S), "--max-request-size", str(2**28), "--log-level", "warning"]
    return ["-m", "loadtest.peers.mosec.serve", role, "--address", HOST, "--port", str(port), *limits]


def flask(role: Role, port: int) -> Sequence[str]:
    """One synchronous worker for the one device, as those servers' own configuration has it."""
    worker = ["--workers", "1", "--worker-class", "sync", "--timeout", str(LIMIT_S)]
    served = f"loadtest.peers.flask.serve:create('{role}')"
    return ["-m", "gunicorn", *worker, "--bind", f"{HOST}:{port}", "--log-level", "warning", served]


def fastapi(role: Role, port: int) -> Sequence[str]:
    """See `loadtest/peers/fastapi/serve.py`."""
    return ["-m", "loadtest.peers.fastapi.serve", role, str(port)]


def infinity(role: Role, port: int) -> Sequence[str]:
    """
    Its own command, without `torch.compile`, which takes minutes on a CPU, and BetterTransformer, which is
    for other models; 64 to a batch, twice its default.
    """
    options = ["--engine", "torch", "--device", "cpu", "--dtype", "float32", "--batch-size", "64"]
    options += ["--no-compile", "--no-bettertransformer", "--no-trust-remote-code", "--log-level", "warning"]
    start = "from infinity_emb.cli import cli; cli()"
    return ["-c", start, "v2", "--model-id", str(CLIP), "--host", HOST, "--port", str(port), *options]


PEERS = {
    peer.name: peer
    for peer in (
        Peer("litserve", "litserve", "json", "/health", litserve),
        Peer("mosec", "mosec", "json", "/", mosec),
        Peer("flask", "flask", "pickle", "/readyz", flask),
        Peer("fastapi", "fastapi", "json", "/readyz", fastapi),
        Peer("infinity", "infinity-emb", "infinity", "/health", infinity),
    )
}
