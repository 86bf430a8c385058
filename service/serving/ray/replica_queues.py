"""The replicas of one model, with the calls that wait for them in a gateway."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, inf

from models.core.contract import ModelInfo
from service.serving.batcher.queue import Queue
from service.serving.contract import AdmissionForecast, WorkEstimate
from service.serving.demand import Demand
from service.serving.job import Job
from service.serving.ray.contract import Described
from service.serving.ray.replica_queue import ReplicaQueue, choose
from service.serving.reservation import Reservations

RECOVERY_S = 10.0  # in which a replica usually restarts


class ReplicaQueues:
    """
    A queue for each replica.  During an update, while replicas have two models, the model of most
    replicas is in use.

    Args:
        make_queue: makes an empty queue for a replica; with `alone` for one that takes calls one by one.

    Attributes:
        model, info: the model in use; not set before the first replica.
        cost: usual tokens of a call.
    """

    info: ModelInfo
    cost: int

    def __init__(self, make_queue: Callable[..., Queue], clock: Callable[[], float]) -> None:
        self._make_queue, self._clock = make_queue, clock
        self._all: dict[str, ReplicaQueue] = {}
        self._removed = -inf  # time of the last removal
        self.model = ""

    def add(self, replica: Described) -> ReplicaQueue | None:
        """Add a replica; return None if it is there already."""
        if replica.id in self._all:
            return None
        queue = self._make_queue(alone=replica.info.generates)
        queue.finished(replica.cost, replica.seconds)
        added = self._all[replica.id] = ReplicaQueue(replica, queue, self._clock())
        self.cost = replica.cost
        return added

    def remove(self, id: str) -> ReplicaQueue | None:
        """Remove and return a replica; None if there is none with *id*."""
        self._removed = self._clock()
        return self._all.pop(id, None)

    def holds(self, replica: ReplicaQueue) -> bool:
        """Return True if *replica* has not been removed."""
        return self._all.get(replica.id) is replica

    def settle(self) -> bool:
        """Choose the model in use, of two equals the present one.  Return True if it was replaced."""
        before, models = self.model, Counter(replica.described.model for replica in self._all.values())
        if not models:
            return False
        self.model = max(models, key=lambda each: (models[each], each == before))
        self.info = self.in_use[0].described.info
        return before not in ("", self.model)

    @property
    def in_use(self) -> list[ReplicaQueue]:
        """The replicas of the model in use."""
        return [replica for replica in self._all.values() if replica.described.model == self.model]

    def emptied(self) -> list[Job]:
        """Remove and return all waiting calls."""
        return [call for replica in self._all.values() for call in replica.queue.take_all(self._clock())]

    def depth(self, lane: str) -> int:
        """Return the number of calls that wait in *lane*."""
        return sum(replica.queue.depth(lane) for replica in self._all.values())

    def for_call(self, digest: str) -> ReplicaQueue | None:
        """Return the replica for a call with that image; None if no replica runs."""
        replicas = self.in_use
        return (
            choose(replicas, digest, max(1, replicas[0].queue.full_batch(self.cost) // 2))
            if replicas
            else None
        )

    def relieve(self, replica: ReplicaQueue) -> None:
        """Move a batch to an idle *replica* from the one with the most waiting calls, if that one is busy."""
        replicas = self.in_use
        busiest = max(replicas, key=lambda each: each.waiting, default=replica)
        if replica in replicas and not busiest.takes_more(self._clock()):
            for call in busiest.queue.take(self._clock()):
                replica.put(call)

    # --- predictions for a demand that all replicas share -----------------------------------------

    def forecast(self, lane: str, demand: Demand) -> AdmissionForecast:
        """Implement `Backend.forecast`."""
        replicas, now = self.in_use, self._clock()
        if not replicas:
            gone_s = now - self._removed
            return AdmissionForecast(gone_s >= RECOVERY_S, max(0.0, RECOVERY_S - gone_s), 0.0, RECOVERY_S)
        part = part_of(demand, replicas)
        each = [replica.scheduler.forecast(replica.resident, lane, part, now) for replica in replicas]
        return AdmissionForecast(
            full=all(one.full for one in each),
            wait_s=sum(one.wait_s for one in each) / len(each),
            run_s=max(one.run_s for one in each),
            drain_s=max(one.drain_s for one in each),
            batches=max(one.batches for one in each),
            too_much=all(one.too_much for one in each),
        )

    def estimate(self, demand: Demand) -> WorkEstimate:
        """Implement `Backend.estimate`."""
        replicas, unknown = self.in_use, WorkEstimate(0.0, 1.0)  # if no replica runs
        part = part_of(demand, replicas)
        return max(
            (replica.scheduler.estimate(replica.resident, part) for replica in replicas), default=unknown
        )

    def reserve(self, lane: str, demand: Demand, parts: int) -> Reservations:
        """Implement `Backend.reserve`."""
        replicas = self.in_use
        part = part_of(demand, replicas)
        return Reservations([replica.queue.reserve(lane, part, parts) for replica in replicas])


def part_of(demand: Demand, replicas: Sequence[ReplicaQueue]) -> Demand:
    """Return the part of *demand* for one of *replicas*."""
    parts = max(1, len(replicas))
    return replace(demand, calls=max(1, ceil(demand.calls / parts)), characters=demand.characters // parts)
