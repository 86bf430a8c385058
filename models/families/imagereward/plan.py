"""What `--check` says of an ImageReward."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from models.checkpoints.plan import total
from models.core.calls import RewardCall
from models.core.contract import Prepared
from models.core.family import Plan
from models.core.settings import Batch, LocalSettings
from models.families.imagereward.layout import find, weights_file
from models.families.imagereward.model import ImageReward, load
from models.families.imagereward.words import LENGTH
from models.sizing.memory import full, predicted_in


def plan(settings: LocalSettings) -> Plan:
    """
    What would be loaded.

    Raises:
        CheckpointError: it can be seen that this will not work.
        RuntimeError: torch knows no such device.
    """
    torch.device(settings.device)
    found = find(settings.checkpoint)
    numbers = total([weights_file(found.directory)])
    memory = predicted_in(found.directory, settings, load, lambda model: full_batches(model, settings.batch))
    return Plan(found.id, str(found.directory), numbers, memory=memory)


def full_batches(model: ImageReward, batch: Batch) -> Iterator[list[Prepared]]:
    """As many different pictures as a batch may hold, each with the longest text."""
    longest = RewardCall(model.example().image, "red " * LENGTH)
    yield full(batch, model.prepare(longest), lambda number, input: replace(input, key=str(number)))
