"""The replicas of a model that a gateway calls, and the jobs that wait for each."""

import asyncio
import hashlib
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from time import monotonic
from typing import Any, Self

from models.core.contract import ModelInfo
from service.core.concurrency.tasks import Tasks
from service.serving.admission import AdmissionForecast
from service.serving.batcher.batching import Queue
from service.serving.batcher.pool import add_batch_span
from service.serving.batcher.scheduler import HostedModel, RunningBatch, Scheduler
from service.serving.job import Job, JobResult, Promise
from service.serving.ray.groups import Deployment, Described, GroupResult, Lost

RETRY_S = 1.0  # a replica that did not answer is called again after it
GROUPS_PER_REPLICA = 2  # a replica has two groups: one that it works on, and the next
RECOVERY_S = 10.0  # a replica usually restarts within it


class ReplicaPresence:
    """
    Gets the description of each new replica.

    Args:
        came: called with a replica that may be used from now on.
        went: called with the id of a replica that has ended.
    """

    def __init__(
        self,
        deployment: Deployment,
        came: Callable[[Described], None],
        went: Callable[[str], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._deployment, self._came, self._went, self._sleep = deployment, came, went, sleep
        self._running: set[str] = set()
        self._describing = Tasks()

    async def __aenter__(self) -> Self:
        """Watch the replicas."""
        loop = asyncio.get_running_loop()

        def changed(ids: Sequence[str]) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._changed, frozenset(ids))

        self._unlisten = self._deployment.listen(changed)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Stop watching."""
        self._unlisten()
        self._running = set()
        await self._describing.cancel()

    def lost(self, id: str) -> None:
        """Get the description of a replica that did not answer again, while it runs by Serve."""
        self._describing.start(self._join(id))

    def _changed(self, ids: frozenset[str]) -> None:
        before, self._running = self._running, set(ids)
        for id in before - ids:
            self._went(id)
        for id in ids - before:
            self._describing.start(self._join(id))

    async def _join(self, id: str) -> None:
        while id in self._running:
            with suppress(Lost):
                described = await self._deployment.describe(id)
                if described.id == id and id in self._running:
                    self._came(described)
                    return
            await self._sleep(RETRY_S)


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
        self.hosted: HostedModel[None] = HostedModel(self.id, None, queue)
        self.scheduler = Scheduler([self.hosted], now, ahead=GROUPS_PER_REPLICA - 1)
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

        A second group is sent if it is full, or when the first one should have ended: its result is on the
        way then, and the replica would be idle until the next group arrives.  Until then the group grows.
        """
        return self.scheduler.has_slot and (self.queue.fills_a_batch or not self.scheduler.ends_in_s(now))

    @property
    def waiting(self) -> int:
        """Number of calls that wait for it here."""
        return sum(self.queue.depth.values())

    def put(self, job: Job) -> None:
        """Queue *job*."""
        self.scheduler.put(self.hosted, job)

    def stalled_s(self, now: float) -> float:
        """Return the seconds since it last answered while its calls wait or run; 0 if it is idle."""
        return self.scheduler.stalled_s(now)

    @property
    def load(self) -> int:
        """Number of calls of this gateway that it has not answered yet."""
        return self.waiting + sum(len(batch.jobs) for batch in self.scheduler.running)


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


def abandon(task: asyncio.Task[Any], jobs: Sequence[Job], result: Promise[JobResult]) -> None:
    """Cancel a group whose calls are all done or cancelled."""
    if all(job.result.done() for job in jobs):
        task.cancel()


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
        return [job for replica in self._all.values() for job in replica.queue.take_all(self._clock())]

    def depth(self, lane: str) -> int:
        """Return the number of calls that wait in *lane*."""
        return sum(replica.queue.depth[lane] for replica in self._all.values())

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
            for job in busiest.queue.take(self._clock()):
                replica.put(job)

    def forecast_without(self) -> AdmissionForecast:
        """Return the forecast while no replica runs: one is usually back within `RECOVERY_S`."""
        gone_s = self._clock() - self._removed
        return AdmissionForecast(gone_s >= RECOVERY_S, max(0.0, RECOVERY_S - gone_s), 0.0, RECOVERY_S)


def returned(
    model: str, replica: ReplicaQueue, batch: RunningBatch[None], given: GroupResult, now: float
) -> list[JobResult]:
    """
    Return the result of each call of a group, with its batch's span, and the way there and back as waiting.

    The results have the seconds of the replica's own batches: a group's time includes the wait for the one
    before it.  The clocks of two machines differ, so a batch's span ends when its result arrives.
    """
    served: dict[float, list[Job]] = defaultdict(list)  # no two batches share a duration
    for job, result in zip(batch.jobs, given.results, strict=True):
        if result.ran_s:
            served[result.ran_s].append(job)
    spans, ended, took_s = dict[float, str](), monotonic(), now - batch.began
    for ran_s, jobs in served.items():
        spans[ran_s] = add_batch_span(jobs, model, replica.described.device, ended - ran_s, ended)
    return [
        replace(
            each,
            waited_s=max(each.waited_s, took_s - each.ran_s - each.decoded_s - each.prepared_s),
            batch_span=spans.get(each.ran_s, ""),
        )
        for each in given.results
    ]
