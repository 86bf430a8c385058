"""What `--check` says of an ImageReward."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from models.calls import RewardCall
from models.checkpoints.plan import total
from models.contract import Prepared
from models.family import Plan
from models.imagereward.layout import find, weights_file
from models.imagereward.model import ImageReward, load
from models.imagereward.words import LENGTH
from models.memory import full, predicted_in
from models.settings import Batch, LocalSettings


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
