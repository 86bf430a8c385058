"""Execution slots: the threads on which a device runs its batches."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, TypeVar

from models.core.contract import Model, Prepared
from service.core.concurrency.cpu_threads import FairThreads
from service.serving.batcher.cpu_policy import compute, compute_on_one_core, loaded_torch

R = TypeVar("R")


class ExecutionSlot:
    """
    A thread that runs batches one after the other.

    Attributes:
        threads: with which torch computes, on a CPU.
        since: when its batch began, or was last answered in part; infinite while it has none.
    """

    def __init__(self, threads: int) -> None:
        self.threads, self.since = threads, inf
        self._thread = FairThreads(1, "device", compute_on_one_core)

    async def score(self, model: Model, batch: Sequence[Prepared]) -> Sequence[Any]:
        """Return the model's outcomes.  Raises what `Model.score` raises."""
        return await self._thread.run(compute, self.threads, model, batch)

    async def run(self, work: Callable[..., R], *given: Any) -> R:
        """Return the result of *work* on this thread."""
        return await self._thread.run(work, *given)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()


def is_out_of_memory(exc: object) -> bool:
    """Return True if a smaller batch may succeed."""
    torch = loaded_torch()
    return isinstance(exc, MemoryError) or bool(torch and isinstance(exc, torch.OutOfMemoryError))
