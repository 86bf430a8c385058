"""The replicas of one model as a gateway sees them, those that are asked among them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, inf

from models.core.contract import ModelInfo
from service.serving.batcher.batch import QueuedCall, Shares
from service.serving.batcher.queue import Queue
from service.serving.contract import AdmissionForecast, WorkEstimate
from service.serving.demand import Demand
from service.serving.ray.contract import Described
from service.serving.ray.replica_queue import ReplicaQueue, choose
from service.serving.ray.reservations import Reservations

RECOVERY_S = 10.0  # in which a replica usually comes back, or the next one comes


class ReplicaQueues:
    """
    A place for each replica.  While replicas of two models run, since an update is on its way, those of
    the model that most of them hold are asked.

    Args:
        make_queue: an empty queue for one more replica; `alone` where it takes calls one by one.

    Attributes:
        model, info: what is asked; there is none until the first replica has come.
        cost: tokens that a call usually has.
    """

    info: ModelInfo
    cost: int

    def __init__(self, make_queue: Callable[..., Queue], shares: Shares, clock: Callable[[], float]) -> None:
        self._make_queue, self._shares, self._clock = make_queue, shares, clock
        self._all: dict[str, ReplicaQueue] = {}
        self._left = -inf  # when the last replica went
        self.model = ""

    def add(self, replica: Described) -> None:
        """A replica may be sent groups from now on; one that is known keeps what waits for it."""
        if replica.id in self._all:
            return
        queue = self._make_queue(alone=replica.info.generates)
        queue.finished(replica.cost, replica.seconds)
        self._all[replica.id] = ReplicaQueue.of(replica, queue, self._shares, self._clock())
        self.cost = replica.cost

    def remove(self, id: str) -> list[QueuedCall]:
        """Who waited for that replica."""
        place = self._all.pop(id, None)
        self._left = self._clock()
        return place.queue.take_all(self._clock()) if place else []

    def holds(self, place: ReplicaQueue) -> bool:
        """Whether *place* is still there."""
        return self._all.get(place.id) is place

    def settle(self) -> bool:
        """Choose the model to ask, of two equals the one that is asked already; whether it changed."""
        before, models = self.model, Counter(place.replica.model for place in self._all.values())
        if not models:
            return False
        self.model = max(models, key=lambda each: (models[each], each == before))
        self.info = self.asked[0].replica.info
        return before not in ("", self.model)

    @property
    def asked(self) -> list[ReplicaQueue]:
        """The replicas of the model that is asked."""
        return [place for place in self._all.values() if place.replica.model == self.model]

    def emptied(self) -> list[QueuedCall]:
        """Everyone who waited for any of them, and does so no longer."""
        return [call for place in self._all.values() for call in place.queue.take_all(self._clock())]

    def depth(self, lane: str) -> int:
        """How many calls wait in *lane*."""
        return sum(place.queue.depth(lane) for place in self._all.values())

    def for_call(self, digest: str) -> ReplicaQueue | None:
        """Where a call about that image waits; None where no replica is there."""
        places = self.asked
        return choose(places, digest, max(1, places[0].queue.full_batch(self.cost) // 2)) if places else None

    def relieve(self, place: ReplicaQueue) -> None:
        """Give an idle *place* a batch of the one that has the most waiting, and can't begin it yet."""
        places = self.asked
        busiest = max(places, key=lambda each: each.waiting, default=place)
        if place in places and not busiest.takes_more:
            for call in busiest.queue.take(self._clock()):
                place.put(call)

    # --- what a demand would meet that all of them share --------------------------------------------

    def outlook(self, lane: str, demand: Demand | None) -> AdmissionForecast:
        """See `Backend.outlook`."""
        places, now = self.asked, self._clock()
        if not places:
            gone_s = now - self._left
            return AdmissionForecast(gone_s >= RECOVERY_S, max(0.0, RECOVERY_S - gone_s), 0.0, RECOVERY_S)
        part = demand and part_of(demand, places)
        each = [place.scheduler.outlook(place.resident, lane, part, now) for place in places]
        return AdmissionForecast(
            full=all(one.full for one in each),
            wait_s=sum(one.wait_s for one in each) / len(each),
            run_s=max(one.run_s for one in each),
            drain_s=max(one.drain_s for one in each),
            batches=max(one.batches for one in each),
            too_much=all(one.too_much for one in each),
        )

    def extent(self, demand: Demand) -> WorkEstimate:
        """See `Backend.extent`."""
        places, unknown = self.asked, WorkEstimate(0.0, 1.0)  # where no replica runs
        part = part_of(demand, places)
        return max((place.scheduler.extent(place.resident, part) for place in places), default=unknown)

    def reserve(self, lane: str, demand: Demand, parts: int) -> Reservations:
        """See `Backend.reserve`."""
        places = self.asked
        part = part_of(demand, places)
        return Reservations([place.queue.reserve(lane, part, parts) for place in places])


def part_of(demand: Demand, places: Sequence[ReplicaQueue]) -> Demand:
    """What one of *places* gets of *demand*."""
    parts = max(1, len(places))
    return replace(demand, calls=max(1, ceil(demand.calls / parts)), characters=demand.characters // parts)
