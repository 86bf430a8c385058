"""What `--check` says of a CLIP of transformers."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from models.calls import TextCall
from models.checkpoints.plan import plan_checkpoint, total
from models.contract import Prepared
from models.family import Memory, Plan
from models.memory import full, predicted_in
from models.settings import Batch, LocalSettings
from models.transformers_clip.loading import safetensors_files
from models.transformers_clip.model import TransformersClip, load


def plan(settings: LocalSettings) -> Plan:
    """
    What would be loaded.

    Raises:
        CheckpointError: it can be seen that this will not work.
        RuntimeError: torch knows no such device.
    """
    torch.device(settings.device)

    def memory(directory: Path) -> Memory | None:
        return predicted_in(directory, settings, load, lambda clip: full_batches(clip, settings.batch))

    return plan_checkpoint(settings.checkpoint, settings.revision, count, {}, memory)


def full_batches(clip: TransformersClip, batch: Batch) -> Iterator[list[Prepared]]:
    """As many images as a batch may hold, and as many texts."""
    for call in (clip.example(), TextCall("a red circle")):
        yield full(batch, clip.prepare(call), lambda number, input: replace(input, key=str(number)))


def count(directory: Path) -> int:
    """How many numbers the weights hold."""
    return total(safetensors_files(directory))
