"""A search for the smallest number of GPUs that meets a p99."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from loadtest.results import percentile
from loadtest.shape import Shape
from loadtest.simulate.fleet import Fleet
from loadtest.simulate.trace import Request, calls_a_second
from service.core.lanes import LANES

MOST = 1000


@dataclass(frozen=True, slots=True)
class Point:
    """
    Prediction for one number of GPUs.

    Attributes:
        p50_s, p99_s: by lane, of requests.
        load: arriving calls a second over GPU capacity; above 1 the queue grows without limit.
    """

    gpus: int
    p50_s: dict[str, float]
    p99_s: dict[str, float]
    load: float

    def holds(self, lane: str, within_s: float) -> bool:
        """Return True if the lane meets the target and its queue does not grow."""
        return self.load <= 1 and self.p99_s[lane] <= within_s


def predicted(
    requests: Sequence[Request],
    gpus: int,
    shape: Shape,
    *,
    request_s: float = 0.0,
    routing: str = "spread",
    max_batch_s: float = 0.25,
) -> Point:
    """
    Simulate one number of GPUs.

    Args:
        request_s: time of a request outside its batches: HTTP, decoding, the way to a replica.
    """
    took = Fleet(gpus, shape, routing=routing, max_batch_s=max_batch_s).run(requests)
    by_lane: dict[str, list[float]] = {}
    for request, seconds in zip(requests, took, strict=True):
        by_lane.setdefault(request.lane, []).append(seconds + request_s)
    p50, p99 = (
        {lane: percentile(by_lane[lane], share) for lane in LANES if lane in by_lane} for share in (0.5, 0.99)
    )
    return Point(gpus, p50, p99, calls_a_second(requests) / (gpus * shape.capacity))


def least(predict: Callable[[int], Point], holds: Callable[[Point], bool], most: int = MOST) -> list[Point]:
    """
    Return all simulated points, by GPUs; the first that holds has the smallest number.

    Numbers are doubled until one holds, then bisected: more GPUs are assumed to be no slower.
    """
    low, high = 0, 1
    points = [predict(high)]
    while not holds(points[-1]) and high < most:
        low, high = high, min(most, 2 * high)
        points.append(predict(high))
    while holds(max(points, key=lambda point: point.gpus)) and high - low > 1:
        middle = (low + high) // 2
        points.append(predict(middle))
        low, high = (low, middle) if holds(points[-1]) else (middle, high)
    return sorted(points, key=lambda point: point.gpus)


def table(points: Iterable[Point]) -> list[str]:
    """Return one line for each number of GPUs."""
    lines = [f"{'GPUs':>5}  {'load':>6}  {'lane':<12} {'p50':>9}  {'p99':>9}"]
    for point in points:
        for lane, p99 in point.p99_s.items():
            times = f"{1000 * point.p50_s[lane]:>6.0f} ms  {1000 * p99:>6.0f} ms"
            lines.append(f"{point.gpus:>5}  {point.load:>6.2f}  {lane:<12} {times}")
    return lines
