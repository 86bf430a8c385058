"""The queue of one replica in a gateway, and the choice of the replica for a call."""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

from service.core.concurrency.promise import Promise
from service.core.lanes import LANES
from service.serving.batcher.queue import Queue
from service.serving.batcher.scheduler import HostedModel, Scheduler
from service.serving.job import Job, Result
from service.serving.ray.contract import Described

GROUPS = 2  # sent to one replica at a time: one that it works on, and the next


class ReplicaQueue:
    """
    One replica, and the calls that wait for it in this gateway.

    Attributes:
        due: sending has been scheduled.
        sent: groups that it has not answered.
        over: it has ended, and so have the groups that it did not answer.
    """

    def __init__(self, described: Described, queue: Queue, now: float) -> None:
        self.described, self.id, self.queue = described, described.id, queue
        self.resident: HostedModel[None] = HostedModel(self.id, None, queue)
        self.scheduler = Scheduler([self.resident], now, ahead=GROUPS - 1)
        self.due, self.over = False, False
        self.sent: set[asyncio.Task[Any]] = set()

    def give_up(self) -> None:
        """End the groups that it did not answer; a connection to a node that vanished reports nothing."""
        self.over = True
        for task in self.sent:
            task.cancel()

    def takes_more(self, now: float) -> bool:
        """
        Return True if another group may be sent.

        A second group is sent if it is full, or when the first one should have ended: its answer is on the
        way then, and the replica would be idle until the next group arrives.  Until then the group grows.
        """
        return self.scheduler.has_slot and (self.queue.fills_a_batch or not self.scheduler.ends_in_s(now))

    @property
    def waiting(self) -> int:
        """Number of calls that wait for it here."""
        return sum(self.queue.depth(lane) for lane in LANES)

    def put(self, call: Job) -> None:
        """Queue *call*."""
        self.scheduler.put(self.resident, call)

    def stalled_s(self, now: float) -> float:
        """Return the seconds since it last answered while its calls wait or run; 0 if it is idle."""
        return self.scheduler.stalled_s(now)

    @property
    def load(self) -> int:
        """Number of calls of this gateway that it has not answered yet."""
        return self.waiting + sum(len(batch.calls) for batch in self.scheduler.running)


def choose(replicas: Sequence[ReplicaQueue], digest: str, slack: int) -> ReplicaQueue:
    """
    Return the replica for a call with the image *digest*.

    Calls with one image get one replica, so that its features are computed once, and few images move when
    replicas start and end (rendezvous hashing).  A replica with *slack* calls more than the least loaded
    one is skipped.  Calls without an image get the least loaded one.
    """
    least = min(replicas, key=lambda replica: replica.load)
    if not digest:
        return least
    ranked = sorted(replicas, key=lambda replica: rank(replica.id, digest))
    return next(replica for replica in ranked if replica.load <= least.load + slack)


def rank(id: str, digest: str) -> bytes:
    """Return a hash of both."""
    return hashlib.blake2b(f"{id} {digest}".encode(), digest_size=8).digest()


def abandon(task: asyncio.Task[Any], calls: Sequence[Job], result: Promise[Result]) -> None:
    """Cancel a group whose calls are all done or cancelled."""
    if all(call.result.done() for call in calls):
        task.cancel()
