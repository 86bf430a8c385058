"""The plan of a detector for `--check`."""

from collections.abc import Callable, Iterator

import torch

from models.checkpoints.files import safetensors_files
from models.checkpoints.plan import plan_model
from models.core.contract import Prepared
from models.core.family import Plan
from models.core.settings import Batch, LocalSettings
from models.families.detector import Owlv2Settings, mask2former, owlv2
from models.families.detector.picture import Picture
from models.sizing.memory import full

LARGEST = (800, 1344)  # height and width of what the published Mask2Formers are given
LABELS = tuple(f"object {number}" for number in range(80))  # as many as COCO has


def plan_mask2former(settings: LocalSettings) -> Plan:
    """Return the plan of a Mask2Former.  Same errors as `plan_model`."""
    return plan_model(
        settings,
        lambda directory: safetensors_files(directory, mask2former.MODEL_TYPE),
        mask2former.load,
        mask2former_batches,
    )


def plan_owlv2(settings: Owlv2Settings) -> Plan:
    """Return the plan of an OWLv2.  Same errors as `plan_model`."""
    return plan_model(
        settings,
        lambda directory: safetensors_files(directory, owlv2.MODEL_TYPE),
        owlv2.load,
        owlv2_batches,
    )


def mask2former_batches(model: mask2former.Mask2Former, batch: Batch) -> Iterator[list[Prepared]]:
    """Yield as many of the largest pictures as a batch may hold."""
    yield full_of(model.ready, batch, LARGEST, ())


def owlv2_batches(model: owlv2.Owlv2, batch: Batch) -> Iterator[list[Prepared]]:
    """Yield as many pictures as a batch may hold, with as many labels as COCO."""
    yield full_of(model.ready, batch, (model.side, model.side), LABELS)


def full_of(
    ready: Callable[[Picture], Prepared], batch: Batch, size: tuple[int, int], labels: tuple[str, ...]
) -> list[Prepared]:
    """Return as many pictures of that height and width as a batch may hold."""
    picture = Picture(torch.zeros(3, *size), (size[1], size[0]), 0.3, labels)
    return full(batch, ready(picture))
