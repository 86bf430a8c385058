"""The CPU policy: which batches run at the same time on a CPU, and with how many threads (ADR 0020)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from models.core.contract import Model, Prepared
from service.core.concurrency.imported import imported
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
