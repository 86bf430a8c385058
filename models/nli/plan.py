"""What `--check` says of an NLI model."""

from pathlib import Path

import torch

from models.checkpoints.plan import plan_checkpoint, total
from models.family import Plan
from models.nli.loading import kind_of, safetensors_files
from models.settings import LocalSettings


def plan(settings: LocalSettings) -> Plan:
    """
    What would be loaded.

    Raises:
        CheckpointError: it can be seen that this will not work.
        RuntimeError: torch knows no such device.
    """
    torch.device(settings.device)
    return plan_checkpoint(settings.checkpoint, settings.revision, count, published={})


def count(directory: Path) -> int:
    """How many numbers the weights hold."""
    kind_of(directory)
    return total(safetensors_files(directory))
