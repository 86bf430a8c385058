"""The cost of a model's batches, and a simulation of a perfect server."""

from collections.abc import Sequence
from dataclasses import dataclass


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
