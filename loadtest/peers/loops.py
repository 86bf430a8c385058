"""Rows that compare the service with a loop in a process that has the model to itself."""

import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random

import orjson

from loadtest import corpus
from loadtest.peers.rounds import Run
from loadtest.results import percentile
from loadtest.servers import Server, item, loop

SAMPLES = 20  # of a round
THREADS = ("1", "2")  # the loop's figure is the better of both


@dataclass(frozen=True, slots=True)
class LoopRow:
    """
    A comparison with a loop.

    Attributes:
        way: of `loadtest.loops`.
        questions: about each picture; 1 is the prompt itself.
    """

    name: str
    what: str
    way: str
    questions: int


LOOPS = {
    row.name: row
    for row in (
        LoopRow("loop-8-reference", "8 questions, over t2v_metrics' loop", "reference", 8),
        LoopRow("loop-8-calls", "8 questions, over a loop of single calls", "calls", 8),
        LoopRow("loop-1-reference", "one pair, over t2v_metrics in process", "reference", 1),
    )
}


@contextmanager
def looped(row: LoopRow) -> Iterator[Callable[[int], Run]]:
    """Yield a function that runs the loop with its best number of threads."""
    with ExitStack() as stack:
        loops = [stack.enter_context(loop(threads, row.way, row.questions)) for threads in THREADS]

        def run(_: int) -> Run:
            times = [[answer_s() for _ in range(SAMPLES)] for answer_s in loops]
            return timing(min(times, key=statistics.median))

        yield run


def through(server: Server, row: LoopRow) -> Callable[[int], Run]:
    """Return a function that runs the same work through HTTP, one request after the other."""
    random = Random(0)
    pictures, prompts = corpus.distinct("rl", random), corpus.prompts(random)

    def request() -> bytes:
        items = [item(next(prompts), next(pictures))]
        if row.questions == 1:
            return orjson.dumps({"items": items, "metrics": ["vqascore"]})
        options = {"dsg": {"question_set": corpus.QUESTION_SET}}
        return orjson.dumps({"items": items, "metrics": ["dsg"], "options": options})

    return lambda _: timing([server.post_s(request()) for _ in range(SAMPLES)])


def timing(seconds: list[float]) -> Run:
    """Return pictures a second by the median, and the latencies."""
    middle = statistics.median(seconds)
    return Run(1 / middle, 1000 * middle, 1000 * percentile(seconds, 0.99))
