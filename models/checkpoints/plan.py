"""Plans for `--check`: the place and the size of a checkpoint that is not loaded."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import torch

from models.checkpoints.locate import cached, local
from models.checkpoints.weights import num_parameters
from models.core.contract import Prepared
from models.core.family import Memory, Plan
from models.core.settings import Batch, LocalSettings
from models.sizing.memory import M, predicted

S = TypeVar("S", bound=LocalSettings)


def plan_checkpoint(
    checkpoint: str,
    revision: str,
    count: Callable[[Path], int],
    published: Mapping[str, int],
    memory: Callable[[Path], Memory | None],
) -> Plan:
    """
    Return the plan of a directory or of a repository on the hub, without a request.

    Args:
        count: returns the number of parameters in a directory, and checks its files.
        published: number of parameters of repositories that may not be downloaded yet.
        memory: predicts the memory of the model in a directory; None if it cannot.

    Raises:
        CheckpointError: there is no such directory, or *count* raised it.
    """
    if found := local(checkpoint):
        size = count(found.directory)
        return Plan(found.id, str(found.directory), size, memory=memory(found.directory))
    at = f"{checkpoint}@{revision or 'main'}"
    if directory := cached(checkpoint, revision):
        return Plan(at, in_cache(directory), count(directory), memory=memory(directory))
    return Plan(at, "the hub (not in its cache)", published.get(checkpoint))


def plan_model(
    settings: S,
    weight_files: Callable[[Path], Iterable[Path]],
    load: Callable[[S], M],
    batches: Callable[[M, Batch], Iterable[Sequence[Prepared]]],
) -> Plan:
    """
    Return the plan of a model that is loaded from a checkpoint directory.

    Args:
        weight_files: returns the files of a directory; it also checks the other files.
        load: the loader of the family, used to predict memory.
        batches: returns the largest batches of a model under the limits of its table.

    Raises:
        CheckpointError: the model cannot be loaded.
        RuntimeError: torch has no such device.
    """
    torch.device(settings.device)

    def count(directory: Path) -> int:
        return num_parameters(weight_files(directory))

    def memory(directory: Path) -> Memory | None:
        here = settings.model_copy(update={"checkpoint": str(directory)})
        return predicted(settings.device, lambda: load(here), lambda model: batches(model, settings.batch))

    return plan_checkpoint(settings.checkpoint, settings.revision, count, {}, memory)


def in_cache(path: Path) -> str:
    """Describe a path in the local cache of the hub."""
    return f"{path} (the hub's cache)"
