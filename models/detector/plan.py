"""What `--check` says of a detector."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from models.checkpoints.plan import plan_checkpoint, total
from models.contract import Prepared
from models.detector import Owlv2Settings, mask2former, owlv2
from models.detector.loading import safetensors_files
from models.detector.picture import Picture
from models.family import Memory, Plan
from models.memory import full, predicted_in
from models.settings import Batch, LocalSettings

LARGEST = (800, 1344)  # height and width of what the published Mask2Formers are given
LABELS = tuple(f"object {number}" for number in range(80))  # as many as COCO has


def plan_mask2former(settings: LocalSettings) -> Plan:
    """What would be loaded.  Raises `CheckpointError` or `RuntimeError`, see `planned`."""
    return planned(settings, mask2former.MODEL_TYPE, mask2former.load, mask2former_batches)


def plan_owlv2(settings: Owlv2Settings) -> Plan:
    """What would be loaded.  Raises `CheckpointError` or `RuntimeError`, see `planned`."""
    return planned(settings, owlv2.MODEL_TYPE, owlv2.load, owlv2_batches)


def planned(
    settings: LocalSettings,
    model_type: str,
    load: Callable[[Any], Any],
    batches: Callable[[Any, Batch], Iterator[list[Prepared]]],
) -> Plan:
    """
    What would be loaded.

    Raises:
        CheckpointError: it can be seen that this will not work.
        RuntimeError: torch knows no such device.
    """
    torch.device(settings.device)

    def count(directory: Path) -> int:
        return total(safetensors_files(directory, model_type))

    def memory(directory: Path) -> Memory | None:
        return predicted_in(directory, settings, load, lambda model: batches(model, settings.batch))

    return plan_checkpoint(settings.checkpoint, settings.revision, count, {}, memory)


def mask2former_batches(model: mask2former.Mask2Former, batch: Batch) -> Iterator[list[Prepared]]:
    """As many of the largest pictures as a batch may hold."""
    yield full_of(model.ready, batch, LARGEST, ())


def owlv2_batches(model: owlv2.Owlv2, batch: Batch) -> Iterator[list[Prepared]]:
    """As many pictures as a batch may hold, with as many labels as COCO has."""
    yield full_of(model.ready, batch, (model.side, model.side), LABELS)


def full_of(
    ready: Callable[[Picture], Prepared], batch: Batch, size: tuple[int, int], labels: tuple[str, ...]
) -> list[Prepared]:
    """As many pictures of that height and width as a batch may hold."""
    picture = Picture(torch.zeros(3, *size), (size[1], size[0]), 0.3, labels)
    return full(batch, ready(picture), lambda _, same: same)
