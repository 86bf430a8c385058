"""Servers without batching."""

import threading

from starlette.concurrency import run_in_threadpool

from loadtest.baselines.app import Hold, Scorer, decode, encoded
from service.web.wire.requests import ScoreRequest


async def bare(wanted: ScoreRequest) -> None:
    """Decode base64, and nothing else."""
    encoded(wanted)


def one_by_one(hold: Hold) -> Scorer:
    """Score pair after pair; the lock allows one thread on the device."""
    lock = threading.Lock()

    def score(wanted: ScoreRequest) -> None:
        for file in encoded(wanted):
            decode(file)
            with lock:
                hold(1)

    return lambda wanted: run_in_threadpool(score, wanted)
