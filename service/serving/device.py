"""
A device and its one owner thread.

The thread runs the batches of every model on the device, one at a time; two threads on one GPU, or on
two cores, would only slow each other down.  Deciding and answering happen on the event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Self

import torch

from models.base import Model, ModelError, Prepared, is_finite
from service.errors import Draining, ModelFault, ScoregateError
from service.serving.batching import Entry, Shares, Ticket
from service.serving.queue import Queue
from service.telemetry import BULK, INTERACTIVE, LANES, Instruments

log = logging.getLogger("scoregate.device")

CORES = torch.get_num_threads()  # OMP_NUM_THREADS, or all there are


class Broken(Exception):
    """A device can't go on: what worked at the start fails now."""


@dataclass(eq=False, slots=True)
class Resident:
    """
    A model on a device, under its configured name, with the calls that wait for it.

    Attributes:
        turn: of the residents with work, the one with the lowest comes next.  It grows by the seconds
            that its batches took, over the weight of the lane they were for.
    """

    name: str
    model: Model
    queue: Queue
    turn: float = 0.0


class Device:
    """
    Runs the batches of its residents, each in its turn.

    Args:
        cores: that its thread computes with, on a CPU.
        on_broken: told once, in one line, when a fault sticks; the process should end then.
        clock: seconds, the event loop's by default.
    """

    def __init__(
        self,
        residents: Sequence[Resident],
        instruments: Instruments,
        *,
        cores: int = 1,
        on_broken: Callable[[str], None] = lambda reason: None,
        shares: Shares | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.residents = tuple(residents)
        self._instruments, self._on_broken = instruments, on_broken
        self._shares, self._clock = shares or Shares(), clock
        self._work = asyncio.Event()
        self._closed = self._leaving = False
        self._thread = ThreadPoolExecutor(1, "device", torch.set_num_threads, (cores,))
        self._task: asyncio.Task[None] | None = None
        self._progress = clock()
        self._turn = 0.0
        self._busy_until: float | None = None  # as predicted; None between batches
        self._ended, self._gap = clock(), 0.0
        for resident in self.residents:
            for lane in LANES:
                depth = instruments.queue_depth.labels(resident.name, lane)
                depth.set_function(partial(resident.queue.depth, lane))

    async def __aenter__(self) -> Self:
        """Score every model's example, then start serving."""
        for resident in self.residents:
            await self._warm(resident)
            self._instruments.model_ready.labels(resident.name).set(1)
        compute_on_one_core()
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Take nothing new, answer what waits with `Draining`, and stop."""
        self._closed = self._leaving = True
        self._work.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown()
        for resident in self.residents:
            self._instruments.model_ready.labels(resident.name).set(0)

    async def _warm(self, resident: Resident) -> None:
        """Twice: the first run pays for what is only paid once, the second tells the pace."""
        example = resident.model.prepare(resident.model.example())
        for _ in range(2):
            began = self._clock()
            [outcome] = await self._on_thread(resident, [example])
            if isinstance(outcome, Exception):
                raise ModelFault(f"{resident.name}: the example failed: {outcome}")
        resident.queue.finished(example.cost, self._clock() - began)

    async def _on_thread(self, resident: Resident, batch: list[Prepared]) -> Sequence[Any]:
        loop = asyncio.get_running_loop()
        outcomes: Sequence[Any] = await loop.run_in_executor(self._thread, resident.model.score, batch)
        return outcomes

    # --- what waits -----------------------------------------------------------------------------

    def submit(self, resident: Resident, prepared: Prepared, ticket: Ticket) -> Entry:
        """Queue one call of *resident*; its entry's future becomes the outcome."""
        if self._closed:
            raise Draining
        now = self._clock()
        if self._idle():
            self._progress = now
        if not resident.queue.waiting:
            resident.turn = max(resident.turn, self._turn)  # no credit for time without work
        entry = resident.queue.put(prepared, ticket, now)
        self._work.set()
        return entry

    @contextmanager
    def expecting(self, resident: Resident, lane: str, calls: int) -> Iterator[None]:
        """While this is open, so many calls of *resident* are being prepared."""
        coming = resident.queue.coming
        group = coming.begun(lane, calls, self._clock())
        try:
            yield
        finally:
            coming.ended(group, self._clock())
            self._work.set()

    def lift(self, resident: Resident, entry: Entry) -> None:
        """Move a waiting call to the interactive lane."""
        resident.queue.lift(entry)

    def wait_s(self, lane: str) -> float:
        """Seconds in which what waits in *lane* now will have been done, at the measured pace."""
        queues = [resident.queue for resident in self.residents]
        wait = sum(queue.drains(INTERACTIVE) for queue in queues)
        if lane == INTERACTIVE:
            wait *= 1 + self._shares.owed(0.0) if any(queue.depth(BULK) for queue in queues) else 1
        else:
            wait += sum(queue.drains(lane) for queue in queues)
        left = 0.0 if self._busy_until is None else max(0.0, self._busy_until - self._clock())
        return wait + left

    def stalled_for(self) -> float:
        """Seconds since the last finished batch while work waits or runs; 0 when idle."""
        if not self.running and not self._leaving:
            return inf  # the loop ended by itself
        return 0.0 if self._idle() else self._clock() - self._progress

    @property
    def running(self) -> bool:
        """Whether batches are being run."""
        return self._task is not None and not self._task.done()

    def _idle(self) -> bool:
        return self._busy_until is None and not any(r.queue.waiting for r in self.residents)

    # --- the loop -------------------------------------------------------------------------------

    async def _run(self) -> None:
        batch: list[Entry] = []
        reason: ScoregateError = Draining()
        try:
            while not self._closed:
                resident = self._next()
                if resident is None:
                    self._work.clear()
                    await self._work.wait()
                    continue
                await self._grow(resident)
                lane = resident.queue.waiting
                if batch := resident.queue.take(self._clock()):
                    await self._take_turn(resident, lane, batch)
                else:  # all had left, and are discounted by callbacks that have yet to run
                    await asyncio.sleep(0)
        except Broken as exc:
            reason = ModelFault(str(exc))
            log.critical("device broken", exc_info=exc)
            self._on_broken(str(exc))
        finally:  # however the loop ends, nobody is left waiting
            self._closed = True
            rest = [entry for r in self.residents for entry in self._all_of(r.queue)]
            for entry in (*batch, *rest):
                entry.answer(reason)
            if not self._leaving:
                for resident in self.residents:
                    self._instruments.model_ready.labels(resident.name).set(0)

    def _next(self) -> Resident | None:
        """The resident whose turn it is."""
        working = [resident for resident in self.residents if resident.queue.waiting]
        return min(working, key=lambda resident: resident.turn, default=None)

    async def _grow(self, resident: Resident) -> None:
        """
        Let a batch that is not full wait: for calls that are being prepared already, and for `linger_s`.

        Without those, their batch takes an a of its own; waiting pays where all of them are likely to be
        ready before that has passed.  Twice as long is given, since to wait in vain costs the b of what
        is ready, and to go too early an a.  Else a request's first image would go alone, and the others
        after it.
        """
        queue, coming = resident.queue, resident.queue.coming
        known = coming.groups
        began, worth = self._clock(), 2 * queue.pace.fixed
        while queue.waiting and not (queue.full or self._closed or self._others_wait(resident)):
            until = queue.oldest() + queue.linger_s if queue.linger_s else 0.0
            if coming.ready_in(known, {queue.waiting, INTERACTIVE}) <= worth:
                until = max(until, began + worth, coming.latest + worth)
            left = until - self._clock()
            if left <= 0:
                return
            self._work.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._work.wait()

    def _others_wait(self, resident: Resident) -> bool:
        return any(other.queue.waiting for other in self.residents if other is not resident)

    async def _take_turn(self, resident: Resident, lane: str, batch: list[Entry]) -> None:
        cost, began = sum(entry.prepared.cost for entry in batch), self._clock()
        # Between batches the loop answers callers; where work waited meanwhile, it waited for that.
        self._gap = max(0.0, began - max(self._ended, min(entry.arrived for entry in batch)))
        pace = resident.queue.pace
        self._busy_until = began + pace.fixed + pace.slope * cost
        self._turn = resident.turn
        await self._score(resident, batch)
        self._busy_until, self._ended = None, self._clock()
        weight = self._shares.interactive if lane == INTERACTIVE else self._shares.bulk
        resident.turn += (self._clock() - began) / weight

    async def _score(self, resident: Resident, batch: list[Entry]) -> None:
        """Run one batch and answer it; a failing one is halved until the bad call stands alone."""
        began = self._clock()
        cost = sum(entry.prepared.cost for entry in batch)
        for entry in batch:
            entry.ticket.waited, entry.ticket.begun = began - entry.arrived, True
        try:
            outcomes = await self._on_thread(resident, [entry.prepared for entry in batch])
            if len(outcomes) != len(batch):
                raise ModelFault(f"{len(batch)} calls in, {len(outcomes)} outcomes out")
        except Exception as exc:
            if is_out_of_memory(exc):
                resident.queue.ran_out_of_memory(cost)
            if len(batch) > 1 and not isinstance(exc, ModelFault):
                middle = len(batch) // 2
                await self._score(resident, batch[:middle])
                await self._score(resident, batch[middle:])
                return
            log.error("batch failed", extra={"model": resident.name}, exc_info=exc)
            await self._check(resident, exc)
            outcomes = [ModelFault(f"the model {resident.name} failed on this call")] * len(batch)
        else:
            resident.queue.finished(cost, self._clock() - began, self._gap)
        self._answer(resident, batch, outcomes, self._clock() - began)

    async def _check(self, resident: Resident, exc: Exception) -> None:
        """Raises `Broken` where even the example, which worked at the start, fails now."""
        example = resident.model.prepare(resident.model.example())
        try:
            [outcome] = await self._on_thread(resident, [example])
        except Exception as worse:
            outcome = worse
        if isinstance(outcome, Exception) and not is_out_of_memory(outcome):
            fault = f"{type(exc).__name__}: {exc}".partition("\n")[0]
            raise Broken(f"the model {resident.name} fails on everything since {fault}") from exc

    def _answer(self, resident: Resident, batch: list[Entry], outcomes: Sequence[Any], ran: float) -> None:
        self._progress = self._clock()
        show = self._instruments
        show.batch_size.labels(resident.name).observe(len(batch))
        show.batch_duration.labels(resident.name).observe(ran)
        for entry, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, ModelError):
                outcome = ModelFault(str(outcome))
            elif not is_finite(outcome):
                outcome = ModelFault(f"the model {resident.name} gave a number that is not finite")
            result = "error" if isinstance(outcome, Exception) else "ok"
            if entry.outcome.done():
                result = "cancelled"
            ticket = entry.ticket
            ticket.ran = ran
            show.calls.labels(resident.name, ticket.lane, result).inc()
            show.queue_wait.labels(resident.name, ticket.lane).observe(ticket.waited)
            entry.answer(outcome)

    def _all_of(self, queue: Queue) -> list[Entry]:
        """Everyone who still waits."""
        return [entry for batch in iter(lambda: queue.take(self._clock()), []) for entry in batch]


def compute_on_one_core() -> None:
    """
    Have this thread compute by itself, and every thread that has not computed yet.

    OpenMP's threads wait for work in a busy loop, which makes small steps fast, but only while no more of
    them are there than cores: a second thread with helpers of its own makes a batch take twice as long.
    """
    torch.set_num_threads(1)


def is_out_of_memory(exc: object) -> bool:
    """Whether a smaller batch may succeed."""
    return isinstance(exc, MemoryError | torch.OutOfMemoryError)
