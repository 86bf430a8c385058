"""A device: its threads, the cores that batches get on a CPU, and the first calls of a model."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from typing import Any, TypeVar

from models.core.contract import Model, Prepared
from models.core.examples import changed
from models.core.machine import threads_at_first
from models.core.messages import in_short
from models.images.image import Image
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.imports import imported
from service.core.errors import ModelFault
from service.core.lanes import LANES
from service.core.settings import NotYet
from service.observability.instruments import Instruments
from service.serving.batcher.batching import checked
from service.serving.batcher.scheduler import Capacity, HostedModel

log = logging.getLogger("scoregate.device")
R = TypeVar("R")

LARGE_MODEL_S = 0.05  # a model whose example takes longer with one thread gains from all cores
MAX_BATCHES_PER_CPU = 8  # batches of one CPU


def loaded_torch() -> Any:
    """Return the module, or None if no model needs it or it is still being imported."""
    return imported("torch")


def all_cores() -> int:
    """Return OMP_NUM_THREADS, or the number of cores; 1 without torch."""
    torch = loaded_torch()
    return threads_at_first(torch) if torch else 1


def compute_on_one_core() -> None:
    """
    Limit this thread, and every thread that has not computed yet, to one core.

    OpenMP's threads wait for work in a busy loop, which makes small steps fast, but only while there are
    no more of them than cores: a second thread with helpers of its own makes a batch take twice as long.
    """
    if torch := loaded_torch():
        threads_at_first(torch)
        torch.set_num_threads(1)
        torch.get_num_threads()  # otherwise the first parallel step takes another thread's number


def compute(torch: Any, threads: int, model: Model, batch: Sequence[Prepared]) -> list[Any]:
    """Return the model's outcomes, computed with *threads* threads of *torch*, if a model needs it."""
    if torch:
        torch.set_num_threads(threads)  # OpenMP's number is per thread, but MKL's is global
    return model.score(batch)


class ExecutionSlot:
    """
    A thread that runs batches one after the other.

    Attributes:
        since: when its batch began, or was last answered in part; infinite while it has none.
    """

    def __init__(self) -> None:
        self.since, self._torch = inf, loaded_torch()
        self._thread = FairThreads(1, "device", compute_on_one_core)

    def score(self, model: Model, batch: Sequence[Prepared], threads: int) -> "asyncio.Future[Sequence[Any]]":
        """Return the model's outcomes, on a CPU computed with *threads*.  Raises as `Model.score` does."""
        return self._thread.run(compute, self._torch, threads, model, batch)

    def run(self, work: Callable[..., R], *given: Any) -> "asyncio.Future[R]":
        """Return the result of *work* on this thread."""
        return self._thread.run(work, *given)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()


def is_out_of_memory(exc: object) -> bool:
    """Return True if a smaller batch may succeed."""
    torch = loaded_torch()
    return isinstance(exc, MemoryError) or bool(torch and isinstance(exc, torch.OutOfMemoryError))


class Device:
    """
    One device of a pool.

    A CPU computes a batch of a small model with one thread, and as many such batches at once as it has cores:
    threads that share a small batch mostly wait for each other.  A large model has one batch at a time, with
    all free cores.

    Args:
        cores: of a CPU; a GPU has one batch at a time, whose thread computes nothing itself.

    Attributes:
        name: the device's name in torch, by which models have their copies.
        slots: the threads that run its batches; only the first ever has helpers, see `compute_on_one_core`.
        fault: why it was taken out; empty while it serves.
    """

    def __init__(self, name: str = "", cores: int = 1) -> None:
        self.name, self.cores, self.fault = name, cores, ""
        self.slots = [ExecutionSlot() for _ in range(min(cores, MAX_BATCHES_PER_CPU))]

    @property
    def capacity(self) -> Capacity:
        """How much it runs at the same time."""
        return Capacity(len(self.slots), self.cores)

    def stalled_for(self, now: float) -> float:
        """Return the seconds since the oldest running batch began or was answered in part; 0 if idle."""
        return max((now - slot.since for slot in self.slots if slot.since < inf), default=0.0)

    def close(self) -> None:
        """End the threads."""
        for slot in self.slots:
            slot.close()


async def warm_up(
    name: str, copies: Sequence[tuple[Model, ExecutionSlot, int]], clock: Callable[[], float]
) -> tuple[int, float, Any]:
    """
    Score the model's example twice with each copy on its slot: the first run includes one-time costs.

    Args:
        copies: each with its slot, and the threads that it computes with.

    Returns:
        The example's cost in tokens, and the seconds and the outcome of its last run.

    Raises:
        ModelFault: the model fails, or its outcomes differ.
        NotYet: the device has too little free memory.
    """
    first = copies[0][0]
    example, outcomes, seconds = first.prepare(first.example()), [], 0.0
    for model, slot, threads in (*copies, *copies):
        began = clock()
        what, needs = "its test call", "for its test call"
        [outcome] = await tested(name, model, slot, [example], what, needs, threads)
        outcomes.append(outcome)
        seconds = clock() - began
    if any(changed(outcomes[0], each) for each in outcomes):
        raise ModelFault(f"{name}: the model gives its test call different numbers each time")
    return example.cost, seconds, outcome


async def is_large(hosted: HostedModel[Model], devices: Sequence[Device], clock: Callable[[], float]) -> bool:
    """
    Return True if the example takes long on one core of a CPU, so that batches should have all cores.

    Raises:
        ModelFault, NotYet: as `tested` does.
    """
    cpu = next((device for device in devices if device.cores > 1), None)
    if cpu is None or not hosted.model.info.reentrant:
        return False
    copy, slot = hosted.copies[cpu.name], cpu.slots[-1]
    example = [copy.prepare(copy.example())]
    await tested(hosted.name, copy, slot, example, "its test call", "for its test call", 1)
    return await slot.run(run_s, copy, example, clock) >= LARGE_MODEL_S


def run_s(model: Model, batch: Sequence[Prepared], clock: Callable[[], float]) -> float:
    """Return the seconds of a batch on this thread alone, without those of waiting for the thread."""
    began = clock()
    compute(loaded_torch(), 1, model, batch)
    return clock() - began


async def tested(
    name: str,
    model: Model,
    slot: ExecutionSlot,
    batch: Sequence[Prepared],
    what: str,
    needs: str,
    threads: int,
) -> Sequence[Any]:
    """
    Return the outcomes of test calls.

    Args:
        what: the calls, in an error.
        needs: what the memory is needed for, in an error.
        threads: with which a CPU computes them.

    Raises:
        ModelFault: a call fails.
        NotYet: the device has too little free memory.
    """
    try:
        outcomes = [checked(name, outcome) for outcome in await slot.score(model, batch, threads)]
    except Exception as exc:
        if not is_out_of_memory(exc):
            raise
        raise NotYet(f"models.{name}: no memory is left {needs}: {in_short(exc)}") from exc
    if failed := next((each for each in outcomes if isinstance(each, Exception)), None):
        raise ModelFault(f"{name}: the model failed on {what}: {failed}")
    return outcomes


async def measure(name: str, model: Model, slot: ExecutionSlot, calls: int) -> None:
    """
    Score *calls* calls like the example, each with a picture of its own, on a GPU, and log its memory.

    What is logged is the most that tensors took meanwhile, weights and other models' included.

    Args:
        calls: as many as a batch may hold.

    Raises:
        ModelFault: the model fails.
        NotYet: the device has too little free memory for them.
    """
    torch, device = loaded_torch(), model.info.device
    if not (device.startswith("cuda") and torch and torch.cuda.is_available()):
        return
    torch.cuda.reset_peak_memory_stats(device)
    batch = await slot.run(like_the_example, model, calls)
    limits = "lower batch.max_items or batch.max_cost_tokens"
    needs = f"on {device} for {calls} calls, the largest batch; {limits}"
    await tested(name, model, slot, batch, f"a batch of {calls} test calls", needs, 1)
    peak = torch.cuda.max_memory_allocated(device)
    log.info("models.%s: %s: %.1f GB with the largest batch, %d calls", name, device, peak / 1e9, calls)


def like_the_example(model: Model, calls: int) -> list[Prepared]:
    """Prepare the example *calls* times, each time with pictures of its own if it has any."""
    example = model.example()

    def other(number: int, image: Image) -> Image:
        return Image.of(image.rgb, f"{image.digest} {number}")

    return [model.prepare(example.with_images(partial(other, number))) for number in range(calls)]


def show(
    hosted: HostedModel[Model],
    devices: Iterable[Device],
    instruments: Instruments,
    stalled_for: Callable[[], float],
    clock: Callable[[], float],
) -> None:
    """
    Create the series of *hosted* and of its *devices*.

    Args:
        stalled_for: of the pool.
    """
    instruments.stalled.labels(hosted.name).set_function(stalled_for)
    for lane in LANES:
        depth = partial(hosted.queue.depth.__getitem__, lane)
        instruments.queue_depth.labels(hosted.name, lane).set_function(depth)
    for device in devices:
        instruments.add_device(hosted.name, device.name, partial(stalled_on, device, clock))


def stalled_on(device: Device, clock: Callable[[], float]) -> float:
    """Return `Device.stalled_for` of now."""
    return device.stalled_for(clock())
