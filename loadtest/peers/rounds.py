"""Rounds: the service and a peer, or a loop, run a row in turns."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import median

import orjson

from demo.process import SERVICE
from loadtest import corpus
from loadtest.peers.peer import CLIP, FOLDER, Peer, peer_served
from loadtest.peers.rows import LOOPS, LoopRow, Result, Role, Row, Run
from loadtest.peers.table import IN_PROCESS
from loadtest.results import Outcome, count, latencies, percentile
from loadtest.servers import Server, item, loop, served
from loadtest.wires import WIRES
from loadtest.workloads import Spec

CLOSE = 1e-4  # two implementations of a CLIP; pictures of different size in a batch
WARM = Spec("sixteen-at-once", rate=1, seconds=48, image="rl")
SAMPLES = 20  # samples of a round with a loop
THREADS = ("1", "2")  # the loop's figure is the better of both


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
    metric = rows[0].spec.metric if role == "clip" else "vqascore"
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
    image, prompt = next(corpus.distinct("rl", random)), next(corpus.prompts(random))
    request = orjson.dumps({"items": [item(prompt, image)], "metrics": [metric]})
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
            with looped(LOOPS[name]) as in_process:
                runs = alternate(rounds, through(server, LOOPS[name]), in_process)
            yield Result(name, IN_PROCESS, "", *runs)


def alternate(
    rounds: int, ours: Callable[[int], Run], theirs: Callable[[int], Run]
) -> tuple[list[Run], list[Run]]:
    """Alternate between both sides; both get the number of the round, hence the same requests."""
    both: tuple[list[Run], list[Run]] = ([], [])
    for number in range(rounds):
        both[0].append(ours(number))
        both[1].append(theirs(number))
    return both


def run_of(outcomes: Sequence[Outcome], value: float) -> Run:
    """Return a run of the load generator; latencies are those of interactive requests, if there are any."""
    lane = "interactive" if any(outcome.lane == "interactive" for outcome in outcomes) else None
    times = latencies(outcomes, lane)
    p50, p99 = (1000 * percentile(times, share) for share in (0.5, 0.99))
    return Run(value, p50, p99, len(outcomes) - count(outcomes, "ok"))


@contextmanager
def looped(row: LoopRow) -> Iterator[Callable[[int], Run]]:
    """Yield a function that runs the loop with its best number of threads."""
    with ExitStack() as stack:
        loops = [stack.enter_context(loop(threads, row.way, row.questions)) for threads in THREADS]

        def run(_: int) -> Run:
            times = [[answer_s() for _ in range(SAMPLES)] for answer_s in loops]
            return timing(min(times, key=median))

        yield run


def through(server: Server, row: LoopRow) -> Callable[[int], Run]:
    """Return a function that runs the same work through HTTP, one request after the other."""
    random = Random(0)
    images, prompts = corpus.distinct("rl", random), corpus.prompts(random)

    def request() -> bytes:
        items = [item(next(prompts), next(images))]
        if row.questions == 1:
            return orjson.dumps({"items": items, "metrics": ["vqascore"]})
        options = {"dsg": {"question_set": corpus.QUESTION_SET}}
        return orjson.dumps({"items": items, "metrics": ["dsg"], "options": options})

    return lambda _: timing([server.post_s(request()) for _ in range(SAMPLES)])


def timing(seconds: list[float]) -> Run:
    """Return pictures a second by the median, and the latencies."""
    middle = median(seconds)
    return Run(1 / middle, 1000 * middle, 1000 * percentile(seconds, 0.99))
