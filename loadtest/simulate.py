"""
A simulation of GPUs: arrivals in, latencies out.  Rows of the load test compare the service with it.

Each GPU has the service's own `Queue`, so lanes, shares and batch sizes are those of the service.
Only time is simulated: a batch takes the time of its `Shape`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from itertools import groupby

from loadtest.results import percentile
from loadtest.workloads import Arrival
from models.core.contract import Prepared
from service.core.lanes import LANES
from service.serving.batcher.queue import Queue
from service.serving.job import Job

NO_LIMIT = 2**62  # on waiting calls: nothing is refused here


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


@dataclass(frozen=True, slots=True)
class Request:
    """A request's arrival in seconds, its calls and its lane."""

    at_s: float
    calls: int
    lane: str


def requests_of(arrivals: Sequence[Arrival]) -> list[Request]:
    """Convert a workload: one call for each image."""
    return [Request(arrival.at_s, arrival.items, arrival.lane) for arrival in arrivals]


def predicted(
    requests: Sequence[Request],
    gpus: int,
    shape: Shape,
    *,
    request_s: float = 0.0,
    routing: str = "spread",
    max_batch_s: float = 0.25,
) -> dict[str, float]:
    """
    Return the p99 of the seconds of requests, by lane.

    Args:
        request_s: time of a request outside its batches: HTTP, decoding, the way to a replica.
    """
    took = Fleet(gpus, shape, routing=routing, max_batch_s=max_batch_s).run(requests)
    by_lane: dict[str, list[float]] = {}
    for request, seconds in zip(requests, took, strict=True):
        by_lane.setdefault(request.lane, []).append(seconds + request_s)
    return {lane: percentile(by_lane[lane], 0.99) for lane in LANES if lane in by_lane}


@dataclass(eq=False, slots=True)
class Gpu:
    """One GPU: its queue, its pending calls or requests, and whether a batch runs."""

    number: int
    queue: Queue
    load: int = 0
    busy: bool = False


class Fleet:
    """
    GPUs that start idle and with a warm cost model.

    Args:
        routing: "balancer" assigns each request to the GPU with the fewest, "spread" each call, as an ideal
            Ray would.  With "queue" the GPUs share one, as the devices of one process do.
        max_batch_s: limit on the duration of a batch.

    Attributes:
        busy_s: total time of all batches.
        ended_s: end of the last batch.
    """

    def __init__(
        self, gpus: int, shape: Shape, *, routing: str = "spread", max_batch_s: float = 0.25
    ) -> None:
        self._shape, self._spread, self._shared = shape, routing == "spread", routing == "queue"
        queues = [warm_queue(shape, max_batch_s) for _ in range(1 if self._shared else gpus)]
        self._gpus = [Gpu(number, queues[number % len(queues)]) for number in range(gpus)]
        self._least = [(0, number) for number in range(gpus)]  # a heap; entries with an old load are stale
        self._ends: list[tuple[float, int, list[Job]]] = []  # a heap
        self.busy_s = self.ended_s = 0.0

    def run(self, requests: Sequence[Request]) -> list[float]:
        """Return the seconds from arrival to response of each request; *requests* are ordered by time."""
        pending = [request.calls for request in requests]
        done_s = [0.0] * len(requests)
        for at_s, together in groupby(enumerate(requests), key=lambda pair: pair[1].at_s):
            self._end_until(at_s, pending, done_s)
            touched = {gpu.number: gpu for index, request in together for gpu in self._put(index, request)}
            for gpu in touched.values():
                self._start(gpu, at_s)
        self._end_until(float("inf"), pending, done_s)
        return [done - request.at_s for done, request in zip(done_s, requests, strict=True)]

    def _put(self, index: int, request: Request) -> Iterable[Gpu]:
        """Queue the calls of a request; return the GPUs that may take some."""
        if self._shared:
            yield from self._gpus
        gpu = self._chosen()
        for number in range(request.calls):
            if number and self._spread:
                gpu = self._chosen()
            gpu.queue.put(Job(Prepared(1, index), request.lane, request.at_s))
            yield gpu

    def _chosen(self) -> Gpu:
        """Return the GPU with the least pending work, and count one more call or request on it."""
        while self._least[0][0] != self._gpus[self._least[0][1]].load:
            heappop(self._least)
        gpu = self._gpus[self._least[0][1]]
        gpu.load += 1
        heapreplace(self._least, (gpu.load, gpu.number))
        return gpu

    def _less(self, gpu: Gpu, by: int) -> None:
        gpu.load -= by
        heappush(self._least, (gpu.load, gpu.number))

    def _start(self, gpu: Gpu, now: float) -> None:
        """Start the next batch on *gpu*, if it is idle and there is one."""
        if not gpu.busy and (batch := gpu.queue.take(now)):
            seconds = self._shape.batch_s(len(batch))
            gpu.busy = True
            self.busy_s += seconds
            gpu.queue.finished(len(batch), seconds)
            heappush(self._ends, (now + seconds, gpu.number, batch))

    def _end_until(self, until: float, pending: list[int], done_s: list[float]) -> None:
        """End the batches that are due by *until*; each GPU then starts its next one."""
        while self._ends and self._ends[0][0] <= until:
            now, number, batch = heappop(self._ends)
            gpu, self.ended_s = self._gpus[number], now
            gpu.busy = False
            answered = 0
            for call in batch:
                index = call.prepared.data
                pending[index] -= 1
                if not pending[index]:
                    done_s[index] = now
                    answered += 1
            self._less(gpu, len(batch) if self._spread else answered)
            self._start(gpu, now)


def warm_queue(shape: Shape, max_batch_s: float) -> Queue:
    """Return a queue whose cost model has seen the smallest and the largest batch."""
    queue = Queue(
        max_items=shape.max_items,
        max_cost=shape.max_items,
        max_waiting=NO_LIMIT,
        max_batch_s=max_batch_s,
    )
    for calls in (1, shape.max_items):
        queue.finished(calls, shape.batch_s(calls))
    return queue
