"""Plans for `--check`: the place and the size of a checkpoint that is not loaded."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import torch

from models.checkpoints.locate import cached, local
from models.checkpoints.weights import num_parameters
from models.core.family import Plan
from models.core.settings import LocalSettings

NO_SIZES: Mapping[str, int] = MappingProxyType({})


def plan(settings: LocalSettings, weights: Callable[[Path], Iterable[Path]]) -> Plan:
    """
    Return the plan of a model that is loaded from a checkpoint directory.

    Args:
        weights: returns the weight files of a directory; it also checks the other files.

    Raises:
        CheckpointError: the model cannot be loaded.
        RuntimeError: torch has no such device.
    """
    torch.device(settings.device)
    return plan_checkpoint(
        settings.checkpoint, settings.revision, lambda directory: num_parameters(weights(directory))
    )


def plan_checkpoint(
    checkpoint: str, revision: str, count: Callable[[Path], int], published: Mapping[str, int] = NO_SIZES
) -> Plan:
    """
    Return the plan of a directory or of a repository on the hub, without a request.

    Args:
        count: returns the number of parameters in a directory, and checks its files.
        published: number of parameters of repositories that may not be downloaded yet.

    Raises:
        CheckpointError: there is no such directory, or *count* raised it.
    """
    if found := local(checkpoint):
        return Plan(found.id, str(found.directory), count(found.directory))
    at = f"{checkpoint}@{revision or 'main'}"
    if directory := cached(checkpoint, revision):
        return Plan(at, in_cache(directory), count(directory))
    return Plan(at, "the hub (not in its cache)", published.get(checkpoint))


def in_cache(path: Path) -> str:
    """Describe a path in the local cache of the hub."""
    return f"{path} (the hub's cache)"
