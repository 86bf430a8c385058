"""A replica as a gateway sees it: what waits for it here, and what is on its way."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from service.core.lanes import LANES
from service.serving.batcher.batch import QueuedCall, Shares
from service.serving.batcher.queue import Queue
from service.serving.batcher.scheduler import HostedModel, Scheduler
from service.serving.ray.contract import Described

GROUPS = 2  # on their way to one replica at a time: one that it works on, and the next
QUICK_S = 0.05  # a group that takes less than this is hardly longer than its way there and back


@dataclass(eq=False, slots=True)
class GroupedCall(QueuedCall):
    """
    A call that travels in a group.

    Attributes:
        digest: of its image; empty where it has none.
        model: what it is asked of; an answer of another model would be kept under a wrong name.
        losses: replicas that went away while they worked on it.
        group: the replica and the name of the group that it travels in.
    """

    digest: str = ""
    model: str = ""
    losses: int = 0
    group: tuple[str, str] = ("", "")


@dataclass(eq=False, slots=True)
class ReplicaQueue:
    """
    One replica.

    Attributes:
        due: whether what waits is about to be sent.
    """

    replica: Described
    resident: HostedModel[None]
    scheduler: Scheduler[None]
    due: bool = False

    @classmethod
    def of(cls, replica: Described, queue: Queue, shares: Shares, now: float) -> "ReplicaQueue":
        """A replica that nothing waits for yet."""
        resident: HostedModel[None] = HostedModel(replica.id, None, queue)
        return cls(replica, resident, Scheduler([resident], shares, now, ahead=GROUPS - 1))

    @property
    def id(self) -> str:
        """The replica's."""
        return self.replica.id

    @property
    def queue(self) -> Queue:
        """What waits for it here."""
        return self.resident.queue

    @property
    def takes_more(self) -> bool:
        """
        Whether another group may set out.

        The next one goes ahead of time where it is full, or where its way would take as long as the work.
        Else it waits for the one before it, and grows meanwhile.
        """
        if not self.scheduler.has_place:
            return False
        full, quick = self.queue.fills_a_batch, self.queue.cost_model.typical_s < QUICK_S
        return not self.scheduler.running or full or quick

    @property
    def waiting(self) -> int:
        """How many calls wait for it here."""
        return sum(self.queue.depth(lane) for lane in LANES)

    def put(self, call: QueuedCall) -> None:
        """Have *call* wait for it."""
        self.scheduler.put(self.resident, call)

    @property
    def load(self) -> int:
        """Calls that it has yet to answer to this gateway."""
        return self.waiting + sum(len(turn.batch) for turn in self.scheduler.running)


def choose(places: Sequence[ReplicaQueue], digest: str, slack: int) -> ReplicaQueue:
    """
    The place for a call about the image *digest*, one of *places*.

    It is the same for every call about one image, so that its features are computed once, and few images
    move when replicas come and go (rendezvous hashing).  A place that has *slack* calls more to answer than
    the least loaded is passed over.  Calls about no image go to the least loaded.
    """
    least = min(places, key=lambda place: place.load)
    if not digest:
        return least
    ranked = sorted(places, key=lambda place: rank(place.id, digest))
    return next(place for place in ranked if place.load <= least.load + slack)


def rank(id: str, digest: str) -> bytes:
    """A number that depends on nothing but both."""
    return hashlib.blake2b(f"{id} {digest}".encode(), digest_size=8).digest()
