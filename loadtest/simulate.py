"""
Models that hold a device for a fixed time, and simulations of servers around them.

Rows of the load test compare the service with them.  Each simulated GPU has the service's own `Queue`, so
batch sizes are those of the service.  Only time is simulated: a batch takes the time of its `Shape`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby
from math import inf

from models.core.contract import Prepared
from service.core.lanes import INTERACTIVE
from service.serving.batcher.batching import Queue
from service.serving.job import Job

NO_LIMIT = 2**62  # the limit of waiting calls: nothing is refused here


@dataclass(frozen=True, slots=True)
class Shape:
    """A batch takes *fixed_ms*, and *per_call_ms* for each of its at most *max_items* calls."""

    fixed_ms: float
    per_call_ms: float
    max_items: int

    def batch_s(self, calls: int) -> float:
        """Return the seconds of one batch."""
        return (self.fixed_ms + self.per_call_ms * calls) / 1000

    @property
    def capacity(self) -> float:
        """Calls a second in full batches."""
        return self.max_items / self.batch_s(self.max_items)


def perfect(arrivals: Sequence[float], shape: Shape) -> list[float]:
    """
    Return the latencies, in seconds, of a server without overhead that batches on demand.

    When the device is free, all waiting calls form the next batch, first come first served.  No server does
    better with these arrivals, so a target that this misses can't be met.
    """
    latencies: list[float] = []
    free = 0.0
    while len(latencies) < len(arrivals):
        first = len(latencies)
        begin = max(free, arrivals[first])
        last = first
        while last < len(arrivals) and last - first < shape.max_items and arrivals[last] <= begin:
            last += 1
        free = begin + shape.batch_s(last - first)
        latencies += [free - arrived for arrived in arrivals[first:last]]
    return latencies


@dataclass(eq=False, slots=True)
class Gpu:
    """One GPU: its queue, the number of its pending calls, and whether a batch runs."""

    queue: Queue
    pending: int = 0
    busy: bool = False


def simulated(arrivals: Sequence[float], gpus: int, shape: Shape, *, shared: bool) -> list[float]:
    """
    Return the latencies, in seconds, of single interactive calls on *gpus*, which start idle.

    Args:
        shared: the GPUs share one queue, as the devices of one process do.  Otherwise each call goes to the
            GPU with the fewest, as an ideal Ray would assign it.
    """
    queues = [warm_queue(shape) for _ in range(1 if shared else gpus)]
    fleet = [Gpu(queues[number % len(queues)]) for number in range(gpus)]
    ends: list[tuple[float, int, list[Job]]] = []  # a heap
    latencies = [0.0] * len(arrivals)

    def start(number: int, now: float) -> None:
        """Start the next batch on a GPU, if it is idle and there is one."""
        gpu = fleet[number]
        if not gpu.busy and (batch := gpu.queue.take(now)):
            seconds = shape.batch_s(len(batch))
            gpu.busy = True
            gpu.queue.finished(len(batch), seconds)
            heappush(ends, (now + seconds, number, batch))

    def end_until(until: float) -> None:
        """End the batches that are due by *until*; each GPU then starts its next one."""
        while ends and ends[0][0] <= until:
            now, number, batch = heappop(ends)
            fleet[number].busy = False
            fleet[number].pending -= len(batch)
            for call in batch:
                index = call.prepared.data
                latencies[index] = now - arrivals[index]
            start(number, now)

    for at_s, together in groupby(range(len(arrivals)), key=arrivals.__getitem__):
        end_until(at_s)
        for index in together:
            gpu = min(fleet, key=lambda gpu: gpu.pending)
            gpu.pending += 1
            gpu.queue.put(Job(Prepared(1, index), INTERACTIVE, at_s))
        for number in range(gpus):
            start(number, at_s)
    end_until(inf)
    return latencies


def warm_queue(shape: Shape) -> Queue:
    """Return a queue whose cost model has seen the smallest and the largest batch."""
    queue = Queue(max_items=shape.max_items, max_cost=shape.max_items, max_waiting=NO_LIMIT, max_batch_s=inf)
    for calls in (1, shape.max_items):
        queue.finished(calls, shape.batch_s(calls))
    return queue
