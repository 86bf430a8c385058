"""How much of a CUDA device's memory a model takes at most, predicted by a dry run."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from models.core.contract import Prepared
from models.core.family import Memory
from models.core.settings import Batch, LocalSettings
from models.sizing.dry_run import dry_run


class Scores(Protocol):
    """The part of a model that runs on the device."""

    def score(self, batch: Sequence[Prepared]) -> Any: ...


M = TypeVar("M", bound=Scores)


def predicted(
    device: str, load: Callable[[], M], batches: Callable[[M], Iterable[Sequence[Prepared]]]
) -> Memory | None:
    """
    What a model holds and what its largest batch adds; None on a CPU, and where a dry run cannot follow it.

    Args:
        load: makes the model, without weights where `is_dry` says so.
        batches: one of them is the largest.
    """
    if not device.startswith("cuda"):
        return None
    try:
        return measured(device, load, batches)
    except Exception:  # operations that have no shape without numbers, or files that are not here
        return None


def predicted_in(
    directory: Path,
    settings: LocalSettings,
    load: Callable[[Any], M],
    batches: Callable[[M], Iterable[Sequence[Prepared]]],
) -> Memory | None:
    """The same of the checkpoint in *directory*, whose weights are not even read for a digest."""
    here = settings.model_copy(update={"checkpoint": str(directory), "id": "-", "revision": "-"})
    return predicted(settings.device, lambda: load(here), batches)


def measured(
    device: str, load: Callable[[], M], batches: Callable[[M], Iterable[Sequence[Prepared]]]
) -> Memory:
    """The same on any device.  Raises whatever the model raises."""
    with dry_run(device) as meter:
        model = load()
        weights = meter.peak = meter.held
        for batch in batches(model):
            model.score(batch)
    return Memory(weights, meter.peak - weights)


def full(batch: Batch, call: Prepared, distinct: Callable[[int, Any], Any]) -> list[Prepared]:
    """
    As many calls like *call* as a batch may hold.

    Args:
        distinct: the call's data with a number that tells it from the others.
    """
    calls = max(1, min(batch.max_items, batch.max_cost_tokens // call.cost))
    return [replace(call, data=distinct(number, call.data)) for number in range(calls)]
