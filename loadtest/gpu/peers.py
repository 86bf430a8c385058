"""
Peers: other model servers around the same checkpoint, with the same requests.

Those whose packages are not installed are left out.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from loadtest.gpu import service
from loadtest.gpu.bench import Bench
from loadtest.gpu.checkpoints import flant5
from loadtest.gpu.results import Row, left_out
from loadtest.gpu.steps import Step
from loadtest.peers.peer import PEERS, Peer, peer_served
from loadtest.workloads import Spec

COMPARED = ("litserve", "mosec", "fastapi")


def steps(bench: Bench) -> Iterator[Step]:
    """Yield a step for each peer."""
    for name in COMPARED:
        peer = PEERS[name]
        if find_spec(peer.package) is None:
            yield Step(name, partial(list, [left_out(what(bench, name), f"{peer.package} is not installed")]))
        else:
            yield Step(name, partial(measure, bench, peer))


def what(bench: Bench, name: str) -> str:
    """Return the name of a peer's row."""
    return f"{name}: {service.BURST}, {bench.geometry.burst}"


def measure(bench: Bench, peer: Peer) -> Iterator[Row]:
    """Send the burst of the part `service`, in this process's environment."""
    burst = Spec("rl-burst", scale=bench.geometry.burst / 512)
    role, log = f"vqa={flant5(bench)}", bench.folder / f"{peer.name}.log"
    with peer_served(peer, role, Path(sys.executable), log) as server:
        server.run(replace(burst, scale=burst.scale / 4))  # warms up
        outcomes = server.run(burst)
    row = service.rate(what(bench, peer.name), outcomes)
    yield row
    ours = bench.results.value("service", f"{service.BURST}, {bench.geometry.burst}")
    if ours and row.value:
        yield Row(f"the service over {peer.name}", ours / row.value, "×")
