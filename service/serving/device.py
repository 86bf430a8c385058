"""
A device and its one owner thread.

The thread runs the batches of every model on the device, one at a time; two threads on one GPU, or on
two cores, would only slow each other down.  Deciding and answering happen on the event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any, Self

from models.base import Model, ModelError
from service.errors import Draining, ModelFault
from service.serving.batching import Entry, Queue
from service.telemetry import Instruments

log = logging.getLogger("scoregate.device")


@dataclass(eq=False, slots=True)
class Resident:
    """A model on a device, under its configured name, with the calls that wait for it."""

    name: str
    model: Model
    queue: Queue


class Device:
    """Runs the batches of its residents; whoever's call is due first comes next."""

    def __init__(
        self,
        residents: Sequence[Resident],
        instruments: Instruments,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.residents = tuple(residents)
        self._instruments = instruments
        self._clock = clock
        self._work = asyncio.Event()
        self._closed = self._leaving = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="device")
        self._task: asyncio.Task[None] | None = None
        self._progress = clock()
        self._busy = False

    async def __aenter__(self) -> Self:
        """Score every model's example, then start serving."""
        for resident in self.residents:
            await self._warm(resident)
            self._instruments.model_ready.labels(resident.name).set(1)
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
        loop = asyncio.get_running_loop()
        example = resident.model.prepare(resident.model.example())
        [outcome] = await loop.run_in_executor(self._thread, resident.model.score, [example])
        if isinstance(outcome, Exception):
            raise ModelFault(f"{resident.name}: the example failed: {outcome}")

    def submit(self, resident: Resident, prepared: Any, lane: str) -> Entry:
        """Queue one call of *resident*; its entry's future becomes the outcome."""
        if self._closed:
            raise Draining
        now = self._clock()
        if self._idle():
            self._progress = now
        entry = resident.queue.put(prepared, lane, now)
        entry.outcome.add_done_callback(lambda _: self._show_depth(resident))
        self._show_depth(resident)
        self._work.set()
        return entry

    def stalled_for(self) -> float:
        """Seconds since the last finished batch while work waits or runs; 0 when idle."""
        if not self.running and not self._leaving:
            return inf  # the loop ended by itself, which it never should
        return 0.0 if self._idle() else self._clock() - self._progress

    @property
    def running(self) -> bool:
        """Whether batches are being run."""
        return self._task is not None and not self._task.done()

    def _idle(self) -> bool:
        return not self._busy and all(r.queue.head() is None for r in self.residents)

    async def _run(self) -> None:
        batch: list[Entry] = []
        try:
            while not self._closed:
                resident = self._next()
                if resident is None:
                    self._work.clear()
                    await self._work.wait()
                elif batch := resident.queue.take():
                    self._busy = True
                    await self._score(resident, batch)
                    self._busy = False
        finally:  # however the loop ends, nobody is left waiting
            self._closed = True
            rest = [entry for r in self.residents for entry in iter(r.queue.take, [])]
            for entry in (*batch, *(entry for taken in rest for entry in taken)):
                entry.answer(Draining())

    def _next(self) -> Resident | None:
        """The resident whose first call is due first."""
        heads = [(head.due, n) for n, r in enumerate(self.residents) if (head := r.queue.head())]
        return self.residents[min(heads)[1]] if heads else None

    async def _score(self, resident: Resident, batch: list[Entry]) -> None:
        """Run one batch and answer it; a failing one is halved until the bad call stands alone."""
        began = self._clock()
        for entry in batch:
            entry.waited = began - entry.arrived
        try:
            outcomes = await asyncio.get_running_loop().run_in_executor(
                self._thread, resident.model.score, [entry.prepared for entry in batch]
            )
            if len(outcomes) != len(batch):
                raise ModelFault(f"{len(batch)} calls in, {len(outcomes)} outcomes out")
        except Exception as exc:
            if len(batch) > 1 and not isinstance(exc, ModelFault):
                middle = len(batch) // 2
                await self._score(resident, batch[:middle])
                await self._score(resident, batch[middle:])
                return
            log.error("batch failed", extra={"model": resident.name}, exc_info=exc)
            outcomes = [ModelFault(f"the model {resident.name} failed on this call")] * len(batch)
        self._answer(resident, batch, outcomes, self._clock() - began)

    def _answer(self, resident: Resident, batch: list[Entry], outcomes: Sequence[Any], ran: float) -> None:
        self._progress = self._clock()
        resident.queue.note_drained(sum(entry.prepared.cost for entry in batch), ran)
        show = self._instruments
        show.batch_size.labels(resident.name).observe(len(batch))
        show.batch_duration.labels(resident.name).observe(ran)
        for entry, outcome in zip(batch, outcomes, strict=True):
            result = "error" if isinstance(outcome, Exception) else "ok"
            if entry.outcome.done():
                result = "cancelled"
            show.calls.labels(resident.name, entry.lane, result).inc()
            show.queue_wait.labels(resident.name, entry.lane).observe(entry.waited)
            entry.ran = ran
            if isinstance(outcome, ModelError):
                outcome = ModelFault(str(outcome))
            entry.answer(outcome)
        self._show_depth(resident)

    def _show_depth(self, resident: Resident) -> None:
        for lane in ("interactive", "bulk"):
            depth = resident.queue.depth(lane)
            self._instruments.queue_depth.labels(resident.name, lane).set(depth)
