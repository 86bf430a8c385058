"""Garbage collection in the processes that run tests: what stays loaded is kept out of it."""

import atexit
import gc
import sys
import time
from typing import Any

import pytest

SLOW_S = 0.05  # CPU time of a full collection, from which on it pays to freeze what has been loaded since


class Watch:
    """The CPU time of the last full collection, in seconds."""

    def __init__(self) -> None:
        self.took_s = self._began_s = 0.0

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        """Take the time, as a callback of `gc`."""
        if info["generation"] < 2:
            return
        if phase == "start":
            self._began_s = time.thread_time()
        else:
            self.took_s = time.thread_time() - self._began_s


watch = Watch()
gc.callbacks.append(watch)
gc.disable()  # until all tests are collected: what is loaded stays


def freeze() -> None:
    """Collect garbage, and keep what is left out of later collections."""
    gc.collect()
    gc.freeze()
    watch.took_s = 0.0


def pytest_collection_finish() -> None:
    """Keep what is loaded now out of later collections, which took a tenth of the CPU time."""
    freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """
    Keep out what files have loaded since, once collections take long: a test that collects took 3 s.

    Not within a file: its tests may look for their own garbage.
    """
    if watch.took_s > SLOW_S and (nextitem is None or nextitem.path != item.path):
        freeze()


@atexit.register
def unfrozen() -> None:
    """
    Let what was loaded be collected at the end where torch was: its libraries report the rest.

    Not earlier: pytest collects garbage five times after the last test.
    """
    if "torch" in sys.modules:
        gc.unfreeze()
