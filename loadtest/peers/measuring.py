"""Measurement of a peer's rows: the service and one peer run, and take turns."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from random import Random

import orjson

from demo.process import SERVICE
from loadtest import corpus
from loadtest.peers.loops import LOOPS, looped, through
from loadtest.peers.peer import CLIP, FOLDER, Peer
from loadtest.peers.rounds import Result, Run, alternate, run_of
from loadtest.peers.rows import Role, Row
from loadtest.peers.serving import peer_served
from loadtest.peers.table import IN_PROCESS
from loadtest.servers import Server, item, served
from loadtest.wires import WIRES
from loadtest.workloads import Spec

CLOSE = 1e-4  # two implementations of a CLIP; pictures of different size in a batch
WARM = Spec("sixteen-at-once", rate=1, seconds=48, picture="rl")


def beside(
    peer: Peer, role: Role, rows: Sequence[Row], rounds: int, python: Path, folder: Path = FOLDER
) -> Iterator[Result]:
    """
    Measure each of *rows* in turns, with *peer* in the environment of *python*.

    The peer is restarted for each row, since some do not survive disconnecting callers.

    Raises:
        SystemExit: a server did not start, or the two return different scores.
    """
    folder.mkdir(parents=True, exist_ok=True)
    metric = rows[0].metric if role == "clip" else "vqascore"
    with service_for(peer) as ours:
        for row in rows:
            with peer_served(peer, role, python, folder / f"{peer.name}.log") as theirs:
                check_same(ours, theirs, metric)
                for server in (ours, theirs):
                    server.run(replace(WARM, metric=metric))
                runs = alternate(rounds, running(ours, row), running(theirs, row))
            yield Result(row.name, peer.name, peer.version, *runs)


def running(server: Server, row: Row) -> Callable[[int], Run]:
    """Return a function that runs *row* on *server*; a round's number is its seed."""

    def run(number: int) -> Run:
        outcomes = server.run(replace(row.spec, seed=number))
        return run_of(outcomes, row.value(outcomes))

    return run


def service_for(peer: Peer) -> AbstractContextManager[Server]:
    """Run the service with its defaults; for infinity with a CLIP that infinity can load."""
    if peer.name != "infinity":
        return served(SERVICE)
    return served(SERVICE, SCOREGATE_MODELS__CLIP__CHECKPOINT=str(CLIP))


def check_same(ours: Server, theirs: Server, metric: str) -> None:
    """Check by one pair's score that both serve the same model."""
    random = Random(1)
    picture, prompt = next(corpus.distinct("rl", random)), next(corpus.prompts(random))
    request = orjson.dumps({"items": [item(prompt, picture)], "metrics": [metric]})
    [[our]], [[their]] = (score_of(server, request) for server in (ours, theirs))
    if abs(our - their) > CLOSE:
        raise SystemExit(f"{metric}: the service says {our}, the peer {their}: not the same model")


def score_of(server: Server, request: bytes) -> Sequence[Sequence[float]]:
    """Return the scores of our request in the format of *server*."""
    wire = WIRES[server.wire]
    with server.client() as client:
        headers = {"Content-Type": "application/json"}
        answers = [client.post(wire.path, content=body, headers=headers) for body in wire.written(request)]
    worst = max(answer.status_code for answer in answers)
    if worst != 200:
        raise SystemExit(f"{wire.path}: {worst} {answers[0].text[:300]}")
    return wire.read(worst, [answer.content for answer in answers]).scores


def beside_loops(names: Sequence[str], rounds: int) -> Iterator[Result]:
    """Measure the rows that compare with a loop."""
    with served(SERVICE) as server:
        server.run(WARM)
        for name in names:
            with looped(LOOPS[name]) as loop:
                runs = alternate(rounds, through(server, LOOPS[name]), loop)
            yield Result(name, IN_PROCESS, "", *runs)
