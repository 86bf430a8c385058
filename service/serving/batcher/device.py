"""A device: its threads, the cores that batches get on a CPU, and the first calls of a model."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from math import inf
from typing import Any

from models.core.contract import Model, Prepared
from models.core.known import changed
from models.core.reason import in_short
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.imported import imported
from service.core.errors import ModelFault
from service.core.lanes import LANES
from service.core.settings import NotYet
from service.observability.instruments import Instruments
from service.serving.batcher.scheduler import HostedModel, RunningBatch

SMALL = 4  # calls; on two cores a batch of fewer is as fast with one thread, and its p99 is half
SHORT_S = 0.05  # small batches that take longer keep all threads: that was not measured


class CpuPolicy:
    """
    The cores of a device, and the rule by which batches get them.

    | batch | threads |
    |---|---|
    | runs alone | all |
    | small, short, and alone on two cores | 1 |
    | full, on two cores, while another full one waits | 1 for each of the two |
    | alone, while decoding takes over half of its time | all but 1 for each group decoded, at least half |
    | interactive, at the same time as bulk batches | 1 |

    Only reentrant models run at the same time.  With one core, one batch runs at a time.
    """

    def __init__(self, cores: int) -> None:
        self._cores = self._free = cores
        self._half = -(-cores // 2)

    @property
    def slots(self) -> list[int]:
        """Threads of each execution slot; only the first ever has more than one."""
        urgent, second = self._cores > 1, self._cores == 2
        return [self._cores, *[1] * (urgent + second)]

    def may_begin(self, resident: HostedModel[Model], *, first: bool, urgent: bool) -> bool:
        """
        Return True if the next batch of *resident* may begin now.

        A batch that runs alone uses the first slot, so no other slot has OpenMP's helper threads, see
        `compute_on_one_core`.  Two batches that are not full would take longer than one.

        Args:
            first: on the first slot.
            urgent: interactive calls wait only for bulk calls.
        """
        if self._free == self._cores:
            return first
        if not resident.model.info.reentrant:
            return False
        return urgent or bool(self._free and resident.queue.fills_a_batch)

    @contextmanager
    def assign(
        self, batch: RunningBatch[Model], residents: Sequence[HostedModel[Model]]
    ) -> Iterator[tuple[int, float]]:
        """
        Reserve cores for *batch*.  Yields its number of threads and its share of the device.

        Args:
            residents: the models of the device, some of whose calls may be being decoded.
        """
        divided = self._cores == 2 and batch.resident.model.info.reentrant
        if self._free < self._cores:
            threads, taken = 1, self._free
        else:
            threads = self._threads_alone(batch, residents, divided)
            taken = threads if divided else self._cores
            if self._cores == 2 and len(batch.calls) < SMALL and predicted_s(batch) < SHORT_S:
                threads = 1
        self._free -= taken
        try:
            yield threads, taken / self._cores
        finally:
            self._free += taken

    def _threads_alone(
        self, batch: RunningBatch[Model], residents: Sequence[HostedModel[Model]], divided: bool
    ) -> int:
        """Return the cores of a batch that begins alone."""
        if divided and batch.resident.queue.fills_a_batch:
            return self._half
        pending = [each.queue.pending for each in residents]
        if sum(each.takes_s for each in pending) <= predicted_s(batch) / 2:
            return self._cores
        return max(self._half, self._cores - sum(each.under_way for each in pending))


def predicted_s(batch: RunningBatch[Model]) -> float:
    """Return the predicted seconds of *batch*."""
    return batch.resident.queue.cost_model.run_s(sum(call.prepared.cost for call in batch.calls))


def loaded_torch() -> Any:
    """Return the module, or None if no model needs it or it is still being imported."""
    return imported("torch")


def all_cores() -> int:
    """Return OMP_NUM_THREADS, or the number of cores; 1 without torch."""
    torch = loaded_torch()
    return threads_at_first(torch) if torch else 1


@cache
def threads_at_first(torch: Any) -> int:
    """Return the number of threads of *torch* at the first call, before any thread was given fewer."""
    return int(torch.get_num_threads())


def compute_on_one_core() -> None:
    """
    Limit this thread, and every thread that has not computed yet, to one core.

    OpenMP's threads wait for work in a busy loop, which makes small steps fast, but only while there are
    no more of them than cores: a second thread with helpers of its own makes a batch take twice as long.
    """
    if torch := loaded_torch():
        threads_at_first(torch)
        torch.set_num_threads(1)


def compute(threads: int, model: Model, batch: Sequence[Prepared]) -> list[Any]:
    """Return the model's outcomes, computed with *threads* threads."""
    if torch := loaded_torch():
        torch.set_num_threads(threads)  # each time: OpenMP's number is per thread, MKL's is global
    return model.score(batch)


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

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()


def is_out_of_memory(exc: object) -> bool:
    """Return True if a smaller batch may succeed."""
    torch = loaded_torch()
    return isinstance(exc, MemoryError) or bool(torch and isinstance(exc, torch.OutOfMemoryError))


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


async def warm_up(
    name: str, copies: Sequence[tuple[Model, ExecutionSlot]], clock: Callable[[], float]
) -> tuple[int, float, Any]:
    """
    Score the model's example twice with each copy on its slot: the first run includes one-time costs.

    Returns:
        The example's cost in tokens, and the seconds and the outcome of its last run.

    Raises:
        ModelFault: the model fails, or its outcomes differ.
        NotYet: the device has too little free memory.
    """
    first = copies[0][0]
    example, outcomes, seconds = first.prepare(first.example()), [], 0.0
    for model, slot in (*copies, *copies):
        began = clock()
        try:
            [outcome] = await slot.score(model, [example])
        except Exception as exc:
            if not is_out_of_memory(exc):
                raise
            raise NotYet(f"models.{name}: no memory is left for its test call: {in_short(exc)}") from exc
        if isinstance(outcome, Exception):
            raise ModelFault(f"{name}: the model failed on its test call: {outcome}")
        outcomes.append(outcome)
        seconds = clock() - began
    if any(changed(outcomes[0], each) for each in outcomes):
        raise ModelFault(f"{name}: the model gives its test call different numbers each time")
    return example.cost, seconds, outcome


def show(
    resident: HostedModel[Model],
    devices: Iterable[Device],
    instruments: Instruments,
    stalled_for: Callable[[], float],
    clock: Callable[[], float],
) -> None:
    """
    Create the series of *resident* and of its *devices*.

    Args:
        stalled_for: of the pool.
    """
    instruments.stalled.labels(resident.name).set_function(stalled_for)
    for lane in LANES:
        instruments.queue_depth.labels(resident.name, lane).set_function(partial(resident.queue.depth, lane))
    for device in devices:
        instruments.add_device(resident.name, device.name, partial(stalled_on, device, clock))


def stalled_on(device: Device, clock: Callable[[], float]) -> float:
    """Return `Device.stalled_for` of now."""
    return device.stalled_for(clock())
