"""What `--check` says of a CLIP of transformers."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from models.checkpoints.plan import plan_model, total
from models.core.calls import TextCall
from models.core.contract import Prepared
from models.core.family import Plan
from models.core.settings import Batch, LocalSettings
from models.families.transformers_clip.loading import weights_of
from models.families.transformers_clip.model import TransformersClip, load
from models.sizing.memory import full


def plan(settings: LocalSettings) -> Plan:
    """What would be loaded.  Raises what `plan_model` does."""
    return plan_model(settings, count, load, full_batches)


def full_batches(clip: TransformersClip, batch: Batch) -> Iterator[list[Prepared]]:
    """As many images as a batch may hold, and as many texts."""
    for call in (clip.example(), TextCall("a red circle")):
        yield full(batch, clip.prepare(call), lambda number, input: replace(input, key=str(number)))


def count(directory: Path) -> int:
    """How many numbers the weights hold."""
    return total(weights_of(directory))
