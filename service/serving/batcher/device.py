"""A device: its threads, and which batches they may run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf

from models.core.contract import Model
from service.serving.batcher.cpu_policy import CpuPolicy
from service.serving.batcher.execution_slot import ExecutionSlot
from service.serving.batcher.scheduler import HostedModel, RunningBatch


class Device:
    """
    One device of a pool.

    Args:
        cpu: the rule for a CPU with several cores; without one, as on a GPU, there is one batch at a time.

    Attributes:
        name: the device's name in torch, by which models have their copies.
        slots: the threads that run its batches.
        fault: why it was taken out; empty while it serves.
    """

    def __init__(self, name: str = "", cpu: CpuPolicy | None = None) -> None:
        self.name, self._cpu, self.fault = name, cpu, ""
        self.slots = [ExecutionSlot(threads) for threads in (cpu.slots if cpu else [1])]

    def may_begin(self, resident: HostedModel[Model], slot: ExecutionSlot, *, urgent: bool) -> bool:
        """Return True if the next batch of *resident* may begin on *slot*; see `CpuPolicy.may_begin`."""
        first = slot is self.slots[0]
        return self._cpu is None or self._cpu.may_begin(resident, first=first, urgent=urgent)

    @contextmanager
    def assign(
        self, batch: RunningBatch[Model], slot: ExecutionSlot, residents: Sequence[HostedModel[Model]]
    ) -> Iterator[float]:
        """Reserve the cores of *batch* while the context is open.  Yields its share of the device."""
        if self._cpu is None:
            yield 1.0
            return
        with self._cpu.assign(batch, residents) as (slot.threads, share):
            yield share

    def stalled_for(self, now: float) -> float:
        """Return the seconds since the oldest running batch began or was answered in part; 0 if idle."""
        return max((now - slot.since for slot in self.slots if slot.since < inf), default=0.0)

    def close(self) -> None:
        """End the threads."""
        for slot in self.slots:
            slot.close()
