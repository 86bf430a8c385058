"""What `--check` says of a detector."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch

from models.checkpoints.plan import plan_model, total
from models.core.contract import Prepared
from models.core.family import Plan
from models.core.settings import Batch, LocalSettings
from models.families.detector import Owlv2Settings, mask2former, owlv2
from models.families.detector.loading import weights_of
from models.families.detector.picture import Picture
from models.sizing.memory import full

LARGEST = (800, 1344)  # height and width of what the published Mask2Formers are given
LABELS = tuple(f"object {number}" for number in range(80))  # as many as COCO has


def plan_mask2former(settings: LocalSettings) -> Plan:
    """What would be loaded.  Raises what `plan_model` does."""
    return plan_model(settings, partial(count, mask2former.MODEL_TYPE), mask2former.load, mask2former_batches)


def plan_owlv2(settings: Owlv2Settings) -> Plan:
    """What would be loaded.  Raises what `plan_model` does."""
    return plan_model(settings, partial(count, owlv2.MODEL_TYPE), owlv2.load, owlv2_batches)


def count(model_type: str, directory: Path) -> int:
    """How many numbers the weights hold."""
    return total(weights_of(directory, model_type))


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
