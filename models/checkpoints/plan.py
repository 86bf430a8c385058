"""What `--check` says of a checkpoint before it is loaded: where it lies, and how many numbers it holds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import torch

from models.checkpoints.locate import cached, local
from models.checkpoints.weights import parameters
from models.core.contract import Prepared
from models.core.family import Memory, Plan
from models.core.settings import Batch, LocalSettings
from models.sizing.memory import M, predicted_in

S = TypeVar("S", bound=LocalSettings)


def plan_checkpoint(
    checkpoint: str,
    revision: str,
    count: Callable[[Path], int],
    published: Mapping[str, int],
    memory: Callable[[Path], Memory | None],
) -> Plan:
    """
    A directory, or a repository of the hub, whether in the local cache or not; no request is made.

    Args:
        count: how many numbers the weights in a directory hold, each once; it also checks what can be
            seen of the directory without loading it.
        published: how many numbers repositories hold that are not here yet.
        memory: what the model in a directory takes of its device, None where that is not predicted.

    Raises:
        CheckpointError: there is no such directory, or what *count* raises.
    """
    if found := local(checkpoint):
        numbers = count(found.directory)
        return Plan(found.id, str(found.directory), numbers, memory=memory(found.directory))
    at = f"{checkpoint}@{revision or 'main'}"
    if directory := cached(checkpoint, revision):
        return Plan(at, in_cache(directory), count(directory), memory=memory(directory))
    return Plan(at, "the hub (not in its cache)", published.get(checkpoint))


def plan_model(
    settings: S,
    count: Callable[[Path], int],
    load: Callable[[S], M],
    batches: Callable[[M, Batch], Iterable[Sequence[Prepared]]],
) -> Plan:
    """
    What a table would load.

    Args:
        count: as `plan_checkpoint` has it.
        load: the family's, by which memory is predicted.
        batches: the largest ones of a model, under the table's limits.

    Raises:
        CheckpointError: it can be seen that this will not work.
        RuntimeError: torch knows no such device.
    """
    torch.device(settings.device)

    def memory(directory: Path) -> Memory | None:
        return predicted_in(directory, settings, load, lambda model: batches(model, settings.batch))

    return plan_checkpoint(settings.checkpoint, settings.revision, count, {}, memory)


def in_cache(path: Path) -> str:
    """A place in the hub's local cache."""
    return f"{path} (the hub's cache)"


def total(files: Iterable[Path]) -> int:
    """How many numbers the tensors of weight files hold."""
    return sum(parameters(files).values())
