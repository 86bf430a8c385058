"""The predicted memory of a model on a CUDA device, from a dry run."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from models.core.contract import Prepared
from models.core.family import Memory
from models.core.settings import Batch
from models.sizing.dry_run import dry_run


class Scores(Protocol):
    """The part of a model that runs on the device."""

    def score(self, batch: Sequence[Prepared]) -> Any: ...


M = TypeVar("M", bound=Scores)


def predicted(
    device: str, load: Callable[[], M], batches: Callable[[M], Iterable[Sequence[Prepared]]]
) -> Memory | None:
    """
    Predict a model's memory; None on a CPU, and if a dry run is not possible.

    Args:
        load: builds the model, without weights if `is_dry()`.
        batches: batches that include the largest; the first is an ordinary full one.
    """
    if not device.startswith("cuda"):
        return None
    try:
        return measured(device, load, batches)
    except Exception:  # operations whose shapes depend on numbers, or missing files
        return None


def measured(
    device: str, load: Callable[[], M], batches: Callable[[M], Iterable[Sequence[Prepared]]]
) -> Memory:
    """Measure the memory in a dry run on any device.  Raises the errors of the model."""
    with dry_run(device) as meter:
        model = load()
        weights = meter.peak = meter.held
        operations = 0
        for batch in batches(model):
            model.score(batch)
            operations = operations or meter.operations  # of the first
    return Memory(weights, meter.peak - weights, operations)


def full(batch: Batch, call: Prepared, key: str = "") -> list[Prepared]:
    """
    Return as many calls like *call* as a batch may hold.

    Args:
        key: field of the call's data that gets another value in each call; by default all are equal.
    """
    calls = max(1, min(batch.max_items, batch.max_cost_tokens // call.cost))
    if not key:
        return [call] * calls
    return [replace(call, data=replace(call.data, **{key: str(number)})) for number in range(calls)]
