"""The peers: their packages, commands and wire formats."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from demo.process import HOST
from loadtest.peers.rows import Role

FOLDER = Path(__file__).parents[2] / "build" / "peers"
LIMIT_S = 600  # to start, and for the peers' own timeouts, so that they never affect a figure
CLIP = FOLDER / "clip"  # served by infinity, and by the service it is compared with

Command = Callable[[Role, int], Sequence[str]]
"""The arguments of Python that serve the model of a role on a port."""


@dataclass(frozen=True, slots=True)
class Peer:
    """
    A server to compare with.

    Attributes:
        package: its version is shown; `requirements.lock` in the peer's folder pins it.
        wire: of `loadtest.wires`.
        ready: the path that returns 200 once it serves.
        command: how it is started.
    """

    name: str
    package: str
    wire: str
    ready: str
    command: Command

    @property
    def lock(self) -> Path:
        """The file of its pinned packages."""
        return Path(__file__).parent / self.name / "requirements.lock"

    @property
    def version(self) -> str:
        """The pinned version of its package."""
        pins = dict(line.split("==") for line in self.lock.read_text("utf-8").splitlines() if "==" in line)
        return pins[self.package]


def litserve(role: Role, port: int) -> Sequence[str]:
    """Return the command of `loadtest/peers/litserve/serve.py`."""
    return ["-m", "loadtest.peers.litserve.serve", role, str(port)]


def mosec(role: Role, port: int) -> Sequence[str]:
    """Return mosec's command with higher limits; its defaults are 3 s and 10 MiB."""
    limits = ["--timeout", str(1000 * LIMIT_S), "--max-request-size", str(2**28), "--log-level", "warning"]
    return ["-m", "loadtest.peers.mosec.serve", role, "--address", HOST, "--port", str(port), *limits]


def flask(role: Role, port: int) -> Sequence[str]:
    """Return gunicorn's command with one synchronous worker, as those servers configure it."""
    worker = ["--workers", "1", "--worker-class", "sync", "--timeout", str(LIMIT_S)]
    served = f"loadtest.peers.flask.serve:create('{role}')"
    return ["-m", "gunicorn", *worker, "--bind", f"{HOST}:{port}", "--log-level", "warning", served]


def fastapi(role: Role, port: int) -> Sequence[str]:
    """Return the command of `loadtest/peers/fastapi/serve.py`."""
    return ["-m", "loadtest.peers.fastapi.serve", role, str(port)]


def infinity(role: Role, port: int) -> Sequence[str]:
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
        Peer("litserve", "litserve", "json", "/health", litserve),
        Peer("mosec", "mosec", "json", "/", mosec),
        Peer("flask", "flask", "pickle", "/readyz", flask),
        Peer("fastapi", "fastapi", "json", "/readyz", fastapi),
        Peer("infinity", "infinity-emb", "infinity", "/health", infinity),
    )
}
