"""The threads that decode pictures and prepare calls."""

import os
from concurrent.futures import ThreadPoolExecutor

from service.lanes import BULK, INTERACTIVE

# Linux keeps it for each thread: decoding for trainers gives way to everything else.
NICE = {INTERACTIVE: 0, BULK: 5}


def cpu_threads(workers: int) -> dict[str, ThreadPoolExecutor]:
    """A pool of *workers* threads for each lane: bulk work never stands before interactive work."""
    return {
        lane: ThreadPoolExecutor(workers, f"cpu-{lane}", initializer=os.nice, initargs=(nice,))
        for lane, nice in NICE.items()
    }
