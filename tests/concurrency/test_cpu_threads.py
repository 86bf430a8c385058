"""The threads that prepare calls."""

import os

from service.concurrency.cpu_threads import cpu_threads


def test_bulk_threads_give_way_to_all_others():
    """On Linux each thread has a niceness of its own; interactive threads keep the process's."""
    pools = cpu_threads(1)
    nice = {lane: pool.submit(os.nice, 0).result() for lane, pool in pools.items()}
    for pool in pools.values():
        pool.shutdown()

    assert {"interactive": os.nice(0), "bulk": min(19, os.nice(0) + 5)} == nice
