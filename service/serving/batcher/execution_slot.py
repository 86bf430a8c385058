"""The places of a device: where its batches run, and how many cores each of them has."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any

from models.core.contract import Model, Prepared
from service.core.concurrency.cpu_threads import FairThreads
from service.serving.batcher.cores import compute


class Cores:
    """
    A device's cores, and how many of them no batch has.

    Two batches with a core each wait for nobody.  One with two threads waits for the slower of them at every
    step, and that one for its turn behind a decoder.  See ADR 0020.
    """

    def __init__(self, all: int) -> None:
        self.all = self.free = all

    @property
    def half(self) -> int:
        """The larger one."""
        return -(-self.all // 2)

    @property
    def unused(self) -> bool:
        """Whether no batch has any."""
        return self.free == self.all

    @contextmanager
    def taken(self, cores: int) -> Iterator[float]:
        """While this is open, so many are not free.  Gives their share of all."""
        self.free -= cores
        try:
            yield cores / self.all
        finally:
            self.free += cores


class ExecutionSlot:
    """
    A thread that runs a device's batches one after the other.

    Attributes:
        cores: that it computes with, on a CPU.
        since: when its batch began, or was last answered in part; infinite while it has none.
    """

    def __init__(self, cores: int) -> None:
        self.cores, self.since = cores, inf
        self._thread = FairThreads(1, "device")

    async def score(self, model: Model, batch: Sequence[Prepared]) -> Sequence[Any]:
        """The model's answers.  Raises what it raises."""
        return await self._thread.run(compute, self.cores, model, batch)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()
